// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "protocol/decoder.hpp"

namespace kclxx::transcript {

/// In the order of protocol::message's bodies.
enum class line_kind {
  initialize,
  process_records,
  lease_lost,   ///< also the older shutdown with ZOMBIE or LEASE_LOST
  shard_ended,  ///< also the older shutdown with TERMINATE or SHARD_END
  shutdown_requested,
  checkpoint_answer,
  unknown_action,
};

/// What a line of the daemon says, without its records.
struct line_summary {
  line_kind kind = line_kind::unknown_action;
  std::string action{};  ///< a status must repeat it
  std::optional<std::string> shard_id{};
  /// initialize has the position where reading begins, processRecords the largest of its records.
  std::optional<sequence_position> position{};
  std::size_t records = 0;
  std::size_t data_bytes = 0;  ///< the data of the records, without base64
  std::optional<std::chrono::milliseconds> millis_behind_latest{};
  // An answer has what the child had asked for, unchanged, and the exception's simple name.
  std::optional<std::string> sequence_number{};
  std::optional<std::int64_t> sub_sequence_number{};
  std::optional<std::string> error{};
};

/// Summarizes lines of the daemon without changing them, so that they can be passed on.
///
/// Thread safety: none. Memory: that of the longest line so far, which it keeps for the next one.
class line_summarizer {
 public:
  using result = std::variant<line_summary, protocol::decode_error>;
  /// `line` is without its newline.
  result summarize(std::string_view line);

 private:
  protocol::decoder decoder_;
  std::string text_;
  std::vector<record> records_;
  std::deque<std::string> arena_;
};

}  // namespace kclxx::transcript
