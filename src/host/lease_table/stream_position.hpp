// SPDX-License-Identifier: Apache-2.0
// What Kinesis tells of a stream: its shards, and where in a shard a point in time is.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::host::lease_table {

/// Since 1970, UTC.
using instant = std::chrono::milliseconds;

/// An ISO 8601 date and time with its zone: 2026-11-29T08:00:00Z, with a fraction of the second and
/// with an offset (+01:00) if need be. Nothing: the text is none.
[[nodiscard]] std::optional<instant> parse_instant(std::string_view text);

/// The text is not what `aws kinesis` prints; what() says why.
class bad_stream_answer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A shard that Kinesis lists. A number is empty where it is not known.
struct stream_shard {
  std::string id;
  std::string first_number;  ///< no record of the shard has a lower sequence number
  std::string last_number;   ///< no record has a higher number; empty while the shard is open
};

struct stream_record {
  std::string sequence_number;
  instant arrival;
};

/// What `aws kinesis get-records` prints.
struct record_page {
  std::vector<stream_record> records;
  std::string next_iterator;  ///< empty: the shard ends here
  bool is_at_tip = false;     ///< there are no later records so far
};

/// Errors: bad_stream_answer.
[[nodiscard]] record_page parse_records(std::string_view text);
/// What `aws kinesis get-shard-iterator` prints. Errors: bad_stream_answer.
[[nodiscard]] std::string parse_iterator(std::string_view text);
/// The shards in what `aws kinesis list-shards` prints. Errors: bad_stream_answer.
[[nodiscard]] std::vector<stream_shard> parse_shards(std::string_view text);

/// Whether a record of the shard can have this sequence number. A text that is no sequence number
/// is not judged: true.
[[nodiscard]] bool can_be_in(const stream_shard& shard, std::string_view sequence_number);

/// Whether the first sequence number is lower. Nothing: one of the texts is none, as TRIM_HORIZON.
[[nodiscard]] std::optional<bool> is_before(std::string_view first, std::string_view second);

/// One shard of a stream.
struct shard_reader {
  /// The iterator at the first record that arrived at that time or later; nothing: at the oldest
  /// record that is kept.
  std::function<std::string(std::optional<instant>)> iterator_at;
  std::function<record_page(const std::string& iterator, int max_records)> read;
};

struct stream_position {
  /// The last record before the time, or TRIM_HORIZON when none is kept.
  std::string checkpoint;
  /// When the first record after the checkpoint arrived; nothing: the shard has none.
  std::optional<instant> first_arrival;
};

/// The checkpoint with which a KCL reads all records that arrived at `time` or later. The KCL reads
/// from the record of the checkpoint on and drops what is up to the checkpoint, so this is the last
/// record before them.
/// Errors: those of the reader. Blocking: as long as the reader.
[[nodiscard]] stream_position find_position(const shard_reader& shard, instant time);

}  // namespace kclxx::host::lease_table
