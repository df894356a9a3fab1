// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_summary.hpp"

#include <cstdint>
#include <simdjson.h>
#include <utility>

#include "protocol/base64.hpp"
#include "protocol/decoder_values.hpp"
#include "protocol/highest_position.hpp"
#include "protocol/message.hpp"
#include "protocol/utf8.hpp"

namespace kclxx::transcript {

namespace {

using namespace protocol;

/// One line being looked at. All fields are taken in one go, whatever the action turns out to be.
class line_walk {
 public:
  line_walk(ondemand::document& document, std::deque<std::string>& arena)
      : document_(document), values_(arena, replaced_) {}

  line_summary take();

 private:
  void take_field(ondemand::raw_json_string key, ondemand::value value);
  void take_records(ondemand::value value);
  void take_record(ondemand::object object, std::ptrdiff_t index);
  void take_data(std::string_view base64, std::ptrdiff_t index);
  void classify();

  ondemand::document& document_;
  bool replaced_ = false;  // of no interest here
  values values_;
  line_summary result_;
  std::optional<std::string> reason_;
  highest_position highest_;
  std::string data_;
  bool has_action_ = false;
  bool has_records_ = false;
};

line_summary line_walk::take() {
  ondemand::json_type type{};
  if (document_.type().get(type) != simdjson::SUCCESS || type != ondemand::json_type::object) {
    fail({}, "is not a JSON object");
  }
  auto object = checked(document_.get_object());
  for (auto item : object) {
    ondemand::field field = checked(std::move(item));
    take_field(field.key(), field.value());
  }
  if (document_.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    fail({}, "has something after the JSON object");
  }
  if (!has_action_) fail("action", "is missing");
  classify();
  return std::move(result_);
}

void line_walk::take_field(ondemand::raw_json_string key, ondemand::value value) {
  const auto text = [&](const char* name) -> std::optional<std::string> {
    const auto view = values_.string(value, {name});
    return view ? std::optional<std::string>(*view) : std::nullopt;
  };
  if (key == "records") {
    take_records(value);
  } else if (key == "action") {
    has_action_ = true;
    result_.action = values_.required_string(value, {"action"});
  } else if (key == "millisBehindLatest") {
    result_.millis_behind_latest = values::time(value, {"millisBehindLatest"});
  } else if (key == "sequenceNumber") {
    result_.sequence_number = text("sequenceNumber");
  } else if (key == "subSequenceNumber") {
    std::int64_t number = 0;
    if (value.get_int64().get(number) == simdjson::SUCCESS) result_.sub_sequence_number = number;
  } else if (key == "error") {
    result_.error = text("error");
  } else if (key == "shardId") {
    result_.shard_id = text("shardId");
  } else if (key == "reason") {
    reason_ = text("reason");
  }
}

void line_walk::take_records(ondemand::value value) {
  has_records_ = true;
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) fail("records", "is not an array");
  for (auto item : array) {
    ondemand::value element = checked(std::move(item));
    ondemand::object object;
    const auto index = static_cast<std::ptrdiff_t>(result_.records);
    if (element.get_object().get(object) != simdjson::SUCCESS) {
      fail("records[" + std::to_string(index) + "]", "is not an object");
    }
    take_record(object, index);
    ++result_.records;
  }
}

void line_walk::take_record(ondemand::object object, std::ptrdiff_t index) {
  std::string_view digits;
  std::uint64_t sub = 0;
  for (auto item : object) {
    ondemand::field field = checked(std::move(item));
    const ondemand::raw_json_string key = field.key();
    ondemand::value value = field.value();
    if (key == "data") {
      take_data(values_.string(value, {"data", index}).value_or(std::string_view()), index);
    } else if (key == "sequenceNumber") {
      digits = values_.string(value, {"sequenceNumber", index}).value_or(std::string_view());
    } else if (key == "subSequenceNumber") {
      sub = values::sub_sequence(value, {"subSequenceNumber", index});
    }
  }
  if (!is_sequence_number(digits)) {
    fail(field_name{"sequenceNumber", index}.text(), describe_bad_digits(digits));
  }
  highest_.take(digits, sub);
}

void line_walk::take_data(std::string_view base64, std::ptrdiff_t index) {
  data_.assign(base64);  // decoded over its own text, and the line stays as it is
  const base64_result decoded = decode_base64(data_.data(), data_.size());
  if (decoded.error != nullptr) fail(field_name{"data", index}.text(), decoded.error);
  result_.data_bytes += decoded.size;
}

void line_walk::classify() {
  if (const auto known = action_named(result_.action)) {
    result_.kind = static_cast<line_kind>(*known);
  } else if (result_.action == "checkpoint") {
    result_.kind = line_kind::checkpoint_answer;
  } else if (result_.action == "shutdown") {
    const auto is_end = is_shard_end(reason_.value_or(""));
    if (!is_end) fail("reason", unknown_shutdown_reason);
    result_.kind = *is_end ? line_kind::shard_ended : line_kind::lease_lost;
  }
  if (result_.kind == line_kind::process_records) {
    if (!has_records_) fail("records", "is missing");
    result_.position = highest_.get();
  }
  if (result_.kind == line_kind::initialize) {
    if (!result_.shard_id) fail("shardId", "is missing");
    const std::int64_t sub = result_.sub_sequence_number.value_or(0);
    if (sub < 0) fail("subSequenceNumber", "is below 0");
    if (!result_.sequence_number) return;
    result_.position =
        sequence_position::parse(*result_.sequence_number, static_cast<std::uint64_t>(sub));
    if (!result_.position) fail("sequenceNumber", "is neither a decimal number nor a sentinel");
  }
}

}  // namespace

struct line_summarizer::working_memory {
  ondemand::parser parser;
  std::deque<std::string> arena;
};

line_summarizer::line_summarizer() : memory_(std::make_unique<working_memory>()) {}
line_summarizer::~line_summarizer() = default;

line_summarizer::result line_summarizer::summarize(std::string_view line) {
  memory_->arena.clear();
  if (is_blank(line)) return decode_error{"is empty", {}};
  try {
    ondemand::document document;
    const auto iterate = [&](std::string_view text) {
      return memory_->parser.iterate(text.data(), text.size(), text.size() + padding).get(document);
    };
    auto error = iterate(line);
    if (error == simdjson::UTF8_ERROR) {
      std::string& copy = memory_->arena.emplace_back(replace_invalid_utf8(line));
      const std::size_t size = copy.size();
      copy.append(padding, '\0');
      error = iterate({copy.data(), size});
    }
    if (error) {
      return decode_error{std::string("is not valid JSON: ") + simdjson::error_message(error), {}};
    }
    return line_walk(document, memory_->arena).take();
  } catch (failure& bad) {
    return std::move(bad.error);
  }
}

}  // namespace kclxx::transcript
