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

namespace kclxx::host::lease_table {

// What a lease table holds, from the JSON that `aws dynamodb scan` prints.

/// The text is no scan of a lease table, or not all of one; what() says what is wrong, and where.
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
  std::string stream{};  ///< in a table of several; else empty
  /// The hash keys of the shard, without leading zeros; empty in rows of KCL before 2.3.
  std::string first_hash_key{};
  std::string last_hash_key{};

  [[nodiscard]] bool has_ended() const { return sequence_number == "SHARD_END"; }
};

/// The lock of KCL 3's leader.
struct leader_lock {
  std::string owner;
  std::string version;  ///< another one after each renewal
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
  std::string client_version;  ///< of KCL 3's migration; empty: there is none
  std::string stream;          ///< only `kclxx local` knows it
  std::map<std::string, backlog> backlogs;
  std::vector<std::string> unleased;  ///< shards without a lease; only `kclxx local` knows them

  /// What another table of KCL 3 has: leader and version of TABLE-CoordinatorState.
  void add_coordinator_state(std::string_view text);
};

/// Errors: bad_scan.
[[nodiscard]] scan parse_scan(std::string_view text);

/// When a record arrived, in seconds since 1970: Kinesis has put it into the sequence number.
/// Nothing: it is no sequence number of that kind.
[[nodiscard]] std::optional<std::int64_t> arrival_of(std::string_view sequence_number);

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

/// An object, in one line or for people; docs/host/operating.md names its keys.
[[nodiscard]] std::string to_json(const picture& all, const std::string& table, std::int64_t now,
                                  bool in_one_line);

}  // namespace kclxx::host::lease_table
