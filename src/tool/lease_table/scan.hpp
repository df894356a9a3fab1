// SPDX-License-Identifier: Apache-2.0
// What a lease table holds, from the JSON that `aws dynamodb scan` prints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::tool::lease_table {

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
  std::vector<std::string> other_rows;  ///< keys of rows that KCL 1 and 2 cannot read
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

}  // namespace kclxx::tool::lease_table
