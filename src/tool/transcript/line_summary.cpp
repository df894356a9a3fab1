// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_summary.hpp"

#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/utf8.hpp"

namespace kclxx::transcript {

namespace {

using nlohmann::json;

template <class Value>
std::optional<Value> value_in(const json& object, const char* name, bool (json::*is_it)() const) {
  const auto found = object.find(name);
  if (found == object.end() || !((*found).*is_it)()) return std::nullopt;
  return found->get<Value>();
}

/// An answer keeps what the child had asked for, which need not be a position.
std::optional<line_summary> answer_in(std::string_view line) {
  const json object = json::parse(protocol::replace_invalid_utf8(line), nullptr, false);
  if (!object.is_object() || object.value("action", json()) != "checkpoint") return std::nullopt;
  line_summary answer{line_kind::checkpoint_answer, "checkpoint"};
  answer.sequence_number = value_in<std::string>(object, "sequenceNumber", &json::is_string);
  answer.sub_sequence_number =
      value_in<std::int64_t>(object, "subSequenceNumber", &json::is_number_integer);
  answer.error = value_in<std::string>(object, "error", &json::is_string);
  return answer;
}

}  // namespace

line_summarizer::result line_summarizer::summarize(std::string_view line) {
  text_.assign(line);  // data is decoded in place, and the line stays as it is
  text_.resize(line.size() + protocol::decoder::padding);
  bool has_replaced_utf8 = false;
  auto decoded = decoder_.decode(text_.data(), line.size(), records_, arena_, has_replaced_utf8);
  auto* const known = std::get_if<protocol::message>(&decoded);
  const auto* const batch =
      known == nullptr ? nullptr : std::get_if<protocol::process_records>(&known->body);
  if (batch == nullptr) {  // it is short, or the last one
    if (auto answer = answer_in(line)) return *std::move(answer);
  }
  if (known == nullptr) return std::get<protocol::decode_error>(std::move(decoded));
  line_summary found{static_cast<line_kind>(known->body.index()), std::move(known->action)};
  if (batch != nullptr) {
    found.position = batch->largest;
    found.millis_behind_latest = batch->millis_behind_latest;
    found.records = records_.size();
    for (const record& one : records_) found.data_bytes += one.data().size();
  } else if (auto* const begin = std::get_if<protocol::initialize>(&known->body)) {
    found.shard_id = std::move(begin->shard_id);
    found.position = std::move(begin->start_position);
  }
  return found;
}

}  // namespace kclxx::transcript
