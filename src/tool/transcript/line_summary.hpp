// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <kclxx/sequence_position.hpp>

#include "protocol/decoder.hpp"

namespace kclxx::transcript {

/// First the actions, in the order of protocol::action_kind.
enum class line_kind {
  initialize,
  process_records,
  lease_lost,   ///< also the older shutdown with ZOMBIE or LEASE_LOST
  shard_ended,  ///< also the older shutdown with TERMINATE or SHARD_END
  shutdown_requested,
  checkpoint_answer,
  unknown_action,
};

/// What a line of the daemon is, without its records.
struct line_summary {
  line_kind kind = line_kind::unknown_action;
  std::string action{};  ///< a status must repeat it
  std::optional<std::string> shard_id{};
  /// initialize: where reading begins; processRecords: the largest among the records.
  std::optional<sequence_position> position{};
  std::size_t records = 0;
  std::size_t data_bytes = 0;  ///< of the records' data, without base64
  std::optional<std::chrono::milliseconds> millis_behind_latest{};
  // Of an answer: what was asked for, unchanged, and the exception's simple name.
  std::optional<std::string> sequence_number{};
  std::optional<std::int64_t> sub_sequence_number{};
  std::optional<std::string> error{};
};

/// Summarizes lines of the daemon without changing or decoding them: for those who pass them on.
///
/// Thread safety: none. It keeps its working memory between lines.
class line_summarizer {
 public:
  /// Bytes after the end of a line that must be readable; their values are free.
  static constexpr std::size_t padding = protocol::decoder::padding;

  line_summarizer();
  ~line_summarizer();
  line_summarizer(const line_summarizer&) = delete;
  line_summarizer& operator=(const line_summarizer&) = delete;

  using result = std::variant<line_summary, protocol::decode_error>;
  /// `line` is without its newline.
  result summarize(std::string_view line);

 private:
  struct working_memory;
  std::unique_ptr<working_memory> memory_;
};

}  // namespace kclxx::transcript
