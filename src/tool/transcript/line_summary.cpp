// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_summary.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/json_string.hpp"
#include "tool/foreign_json.hpp"

namespace kclxx::transcript {

namespace {

using nlohmann::json;

/// An answer repeats what a child has written, so it can be long. A longer line is no answer.
constexpr std::size_t max_answer = std::size_t{1} << 20;

/// The answer to a checkpoint in a line; std::nullopt when the line is none. It keeps what the
/// child had asked for, which need not be a position.
/// Errors: tool::foreign_json_error for a wrong field.
std::optional<line_summary> answer_in(std::string_view line) {
  if (line.size() > max_answer) return std::nullopt;
  json object;
  try {
    object = tool::parse_foreign(protocol::replace_invalid_utf8(line));
  } catch (const tool::foreign_json_error&) {  // the decoder tells what is wrong with the line
    return std::nullopt;
  }
  const json* const action = tool::find_foreign(object, "action");
  if (action == nullptr || *action != "checkpoint") return std::nullopt;
  line_summary answer{line_kind::checkpoint_answer, "checkpoint"};
  answer.sequence_number = tool::find_foreign_text(object, "sequenceNumber");
  answer.sub_sequence_number = tool::find_foreign_number(object, "subSequenceNumber");
  answer.error = tool::find_foreign_text(object, "error");
  return answer;
}

}  // namespace

line_summarizer::result line_summarizer::summarize(std::string_view line) {
  text_.assign(line);  // the decoder works in place, and the caller's line must not change
  text_.resize(line.size() + protocol::decoder::padding);
  bool has_replaced_utf8 = false;
  auto decoded = decoder_.decode(text_.data(), line.size(), records_, arena_, has_replaced_utf8);
  auto* const known = std::get_if<protocol::message>(&decoded);
  const auto* const batch =
      known == nullptr ? nullptr : std::get_if<protocol::process_records>(&known->body);
  // A batch, which is long, is not read a second time.
  if (batch == nullptr) {
    try {
      if (auto answer = answer_in(line)) return *std::move(answer);
    } catch (const tool::foreign_json_error& error) {
      return protocol::decode_error{error.what(), {}};
    }
  }
  if (known == nullptr) return std::get<protocol::decode_error>(std::move(decoded));
  line_summary summary{static_cast<line_kind>(known->body.index()), std::move(known->action)};
  if (batch != nullptr) {
    summary.position = batch->largest;
    summary.millis_behind_latest = batch->millis_behind_latest;
    summary.records = records_.size();
    for (const record& record : records_) summary.data_bytes += record.data().size();
  } else if (auto* const begin = std::get_if<protocol::initialize>(&known->body)) {
    summary.shard_id = std::move(begin->shard_id);
    summary.position = std::move(begin->start_position);
  }
  return summary;
}

}  // namespace kclxx::transcript
