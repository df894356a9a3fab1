// SPDX-License-Identifier: Apache-2.0
// What scans of a lease table tell: which leases get on, and what keeps the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tool/lease_table/scan.hpp"

namespace kclxx::tool::lease_table {

enum class lease_state {
  ok,
  held,  ///< by an owner of whom the scans do not tell whether it lives
  ended,
  waits,
  handing_over,
  free,
  stuck,
};

[[nodiscard]] const char* name_of(lease_state state);

struct shard_state {
  lease_table::lease lease;
  lease_state state = lease_state::ok;
  std::string cause;              ///< of any state but ok, held and ended: why, and what to do
  std::optional<bool> is_moving;  ///< its counter; nothing: the scans do not tell
  std::optional<std::int64_t> arrival;  ///< of the record at its checkpoint: see arrival_of
  backlog waiting;
};

/// Of the whole table.
struct note {
  bool is_problem;
  std::string text;
};

struct picture {
  std::vector<shard_state> shards;
  std::vector<note> notes;
  std::vector<std::string> other_rows;
  std::optional<leader_lock> leader;
  std::optional<bool> is_leader_moving;
  std::string client_version;
  std::size_t scans = 0;
  std::chrono::milliseconds observed{0};  ///< from the first scan to the last

  [[nodiscard]] bool is_stuck() const;
  [[nodiscard]] bool is_handing_over() const;
};

/// The longest time between two renewals of a lease: a third of failoverTimeMillis, with a margin.
inline constexpr std::chrono::milliseconds renewal_limit{12'000};

/// What was seen so far.
class observation {
 public:
  using time = std::chrono::milliseconds;  ///< since whatever is the same for all scans

  /// A hand-over takes at most gracefulLeaseHandoffTimeoutMillis: 30 s, and a scan's delay.
  static constexpr time hand_over_limit{35'000};

  /// A counter that is the same for this long stands still.
  explicit observation(time limit) : limit_(limit) {}

  void add(scan next, time instant);
  /// Precondition: there was a scan.
  [[nodiscard]] picture look() const;

 private:
  /// How long something has been the same.
  struct constancy {
    std::string value;
    time since{0};
    bool has_changed = false;
  };

  [[nodiscard]] time same_for(const std::string& key) const;
  [[nodiscard]] std::optional<bool> is_moving(const std::string& key, time limit) const;
  [[nodiscard]] shard_state look_at(const lease& one) const;
  [[nodiscard]] bool lacks_leader() const;
  [[nodiscard]] std::string when_to_start() const;
  [[nodiscard]] std::string why_free() const;
  [[nodiscard]] std::string why_not_renewed(const lease& one) const;
  [[nodiscard]] std::optional<bool> is_leader_moving() const;
  void look_at_leader(picture& all) const;
  void look_at_shards_without_lease(picture& all) const;

  time limit_;
  scan latest_;
  time first_{0};
  time last_{0};
  std::size_t scans_ = 0;
  /// By what it is and of which shard.
  std::map<std::string, constancy> seen_;
};

/// For people. `now`: in seconds since 1970.
[[nodiscard]] std::string to_table(const picture& all, std::int64_t now);

/// A header line, then one line for each lease, of fields between tabs.
[[nodiscard]] std::string to_tsv(const picture& all);

/// An object, in one line or for people; docs/leases.md has its fields.
[[nodiscard]] std::string to_json(const picture& all, const std::string& table, std::int64_t now,
                                  bool in_one_line);

}  // namespace kclxx::tool::lease_table
