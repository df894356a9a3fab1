// SPDX-License-Identifier: Apache-2.0
// What scans of a lease table tell: which leases get on, and what keeps the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrival_time.hpp"
#include "host/lease_table/stream_position.hpp"

namespace kclxx::host::lease_table {

// A lease table, read from the JSON that `aws dynamodb scan` prints.

/// The text is no scan of a lease table, or only a part of it; what() says what is wrong, and
/// where.
class bad_scan : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct lease {
  std::string shard;
  std::string owner;             ///< empty: nobody
  std::string checkpoint_owner;  ///< KCL 3: who still has to give it to `owner`; empty: nobody
  std::uint64_t counter = 0;
  std::string sequence_number;  ///< or TRIM_HORIZON, LATEST, AT_TIMESTAMP, SHARD_END
  std::string sub_sequence_number;
  std::vector<std::string> parents;
  std::string stream{};  ///< only a table of several streams has it; else empty
  /// The hash keys of the shard, without leading zeros; empty in rows of KCL before 2.3.
  std::string first_hash_key{};
  std::string last_hash_key{};

  [[nodiscard]] bool has_ended() const { return sequence_number == "SHARD_END"; }
};

/// The lock of KCL 3's leader.
struct leader_lock {
  std::string owner;
  std::string version;  ///< each renewal changes it
};

/// The records after a checkpoint; only `kclxx local` knows them.
struct backlog {
  std::optional<std::uint64_t> records;
  std::optional<std::uint64_t> oldest;  ///< the age of the oldest, in milliseconds
};

struct scan {
  std::vector<lease> leases;            ///< by shard
  std::vector<std::string> other_rows;  ///< keys of rows that KCL 2 cannot read
  std::optional<leader_lock> leader;
  std::string client_version;  ///< the step of KCL 3's migration; empty: the table names none
  std::string stream;          ///< empty: not known
  /// The stream's shards, as they were after the table was read; empty: not known.
  std::vector<stream_shard> shards;
  std::map<std::string, backlog> backlogs;  ///< by shard
  std::vector<std::string> unleased;  ///< shards without a lease; only `kclxx local` knows them

  /// Takes leader and version from a scan of TABLE-CoordinatorState, where KCL 3.0 to 3.4 have
  /// them. Errors: bad_scan.
  void add_coordinator_state(std::string_view text);
};

/// What a scan of the whole table has. Errors: bad_scan.
[[nodiscard]] scan parse_scan(std::string_view text);

using kclxx::detail::arrival_of;

enum class lease_state {
  ok,
  held,  ///< it has an owner, and the scans do not tell whether that lives
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
  std::string cause;                    ///< why, and what to do; empty with ok, held and ended
  std::optional<bool> is_moving;        ///< whether its counter rises; nothing: not known
  std::optional<std::int64_t> arrival;  ///< of the record at its checkpoint: see arrival_of
  backlog waiting;
};

/// What is said of the whole table.
struct note {
  bool is_problem;
  std::string text;
};

/// The leases of one worker whose shards have not ended.
struct worker_share {
  std::string worker;  ///< empty: leases that no worker has
  std::size_t leases = 0;
  std::optional<std::int64_t> arrival;   ///< of the oldest record at a checkpoint: see arrival_of
  std::optional<std::uint64_t> records;  ///< after the checkpoints, as far as they are known
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
  /// In the order of the workers' names; the leases without a worker come first.
  [[nodiscard]] std::vector<worker_share> shares() const;
};

/// The longest time between two renewals of a lease: a third of failoverTimeMillis, with a margin.
inline constexpr std::chrono::milliseconds renewal_limit{12'000};

/// What the scans so far have shown.
class observation {
 public:
  using time = std::chrono::milliseconds;  ///< since some moment, the same for all scans

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
  [[nodiscard]] shard_state look_at(const lease& row) const;
  [[nodiscard]] bool lacks_leader() const;
  [[nodiscard]] std::string when_to_start() const;
  [[nodiscard]] std::string why_free() const;
  [[nodiscard]] std::string why_not_renewed(const lease& row) const;
  [[nodiscard]] std::optional<bool> is_leader_moving() const;
  void look_at_leader(picture& result) const;
  void look_at_shards_without_lease(picture& result) const;
  void look_at_foreign_rows(picture& result) const;

  time limit_;
  scan latest_;
  time first_{0};
  time last_{0};
  std::size_t scans_ = 0;
  /// The key says what it is and of which shard: "counter SHARD", "owners SHARD", "hole RANGE".
  std::map<std::string, constancy> seen_;
};

/// A table for people, with its notes. `now`: in seconds since 1970.
[[nodiscard]] std::string to_table(const picture& seen, std::int64_t now);

/// A header line, then one line for each lease, of fields between tabs. `now`: in seconds since
/// 1970.
[[nodiscard]] std::string to_tsv(const picture& seen, std::int64_t now);

/// An object, in one line or for people; docs/host/leases.md has its fields.
[[nodiscard]] std::string to_json(const picture& seen, const std::string& table, std::int64_t now,
                                  bool in_one_line);

}  // namespace kclxx::host::lease_table
