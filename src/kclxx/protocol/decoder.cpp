// SPDX-License-Identifier: Apache-2.0
#include "protocol/decoder.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/base64.hpp"
#include "protocol/decimal.hpp"
#include "protocol/fast_batch_parser.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::protocol {

static_assert(decoder::padding >= simdjson::SIMDJSON_PADDING);
static_assert(decoder::padding >= fast_batch_parser::look_ahead);

namespace ondemand = simdjson::ondemand;

namespace {

// JSON values as the wire has them, with errors that name the field.

// A bad line is the end of the process, not a path to make
// fast.
struct failure {
  decode_error error;
};

[[noreturn]] void fail(std::string field, std::string problem) {
  throw failure{{std::move(problem), std::move(field)}};
}

template <class T>
T checked(simdjson::simdjson_result<T> result) {
  T value;
  if (const auto error = std::move(result).get(value)) {
    fail({}, std::string("is not valid JSON: ") + simdjson::error_message(error));
  }
  return value;
}

// A field's name is put together only when it is needed, for an error.
struct field_name {
  const char* name;
  std::ptrdiff_t record = -1;
  [[nodiscard]] std::string text() const {
    return (record < 0 ? std::string() : "records[" + std::to_string(record) + "].") + name;
  }
};

/// Takes values of one line. Texts are views into the line, or into the arena where an escape had
/// to be undone.
class values {
 public:
  /// `replaced` is set when text had to be replaced by U+FFFD.
  values(std::deque<std::string>& arena, bool& replaced) : arena_(arena), replaced_(replaced) {}

  std::optional<std::string_view> string(ondemand::value& value, field_name name);
  std::string required_string(ondemand::value& value, field_name name);
  /// std::nullopt for a time that no record can show. `unknown` names the first one.
  static std::optional<std::chrono::milliseconds> time(ondemand::value& value, field_name name,
                                                       std::string& unknown);
  static std::uint64_t sub_sequence(ondemand::value& value, field_name name);
  /// Decoded from base64, in place.
  std::optional<std::string_view> data(ondemand::value& value, field_name name);

 private:
  static std::string_view token(ondemand::value& value);

  std::deque<std::string>& arena_;
  bool& replaced_;
};

/// A scalar's text as it was written. It reaches to the next structural character, and so may have
/// white space after it.
std::string_view values::token(ondemand::value& value) {
  std::string_view text = value.raw_json_token();
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' ||
                           text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

std::optional<std::string_view> values::string(ondemand::value& value, field_name name) {
  const std::string_view text = token(value);
  if (text == "null") return std::nullopt;
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
    fail(name.text(), "is not a string");
  }
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside.find('\\') == std::string_view::npos) return inside;
  auto plain = unescape(text, replaced_);
  if (!plain) fail(name.text(), "has a bad escape");
  return arena_.emplace_back(std::move(*plain));
}

std::string values::required_string(ondemand::value& value, field_name name) {
  const auto text = string(value, name);
  if (!text) fail(name.text(), "is null");
  return std::string(*text);
}

std::optional<std::chrono::milliseconds> values::time(ondemand::value& value, field_name name,
                                                      std::string& unknown) {
  const std::string_view text = token(value);
  if (text == "null") return std::nullopt;
  constexpr std::int64_t limit = most_milliseconds;
  std::int64_t whole = 0;
  if (value.get_int64().get(whole) == simdjson::SUCCESS) {
    if (whole >= -limit && whole <= limit) return std::chrono::milliseconds(whole);
  } else {
    // Below 2^53, so that a double has it exactly.
    constexpr auto end = static_cast<double>(limit + 1);
    double number = 0;
    if (value.get_double().get(number) == simdjson::SUCCESS && number > -end && number < end) {
      return std::chrono::milliseconds(static_cast<std::int64_t>(number));
    }
  }
  checked(value.type());
  if (unknown.empty()) unknown = name.text() + " is " + std::string(text.substr(0, 40));
  return std::nullopt;
}

std::uint64_t values::sub_sequence(ondemand::value& value, field_name name) {
  if (token(value) == "null") return 0;
  // The daemon's own type is a Java long: it drops a checkpoint with a higher one.
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS || number < 0) {
    fail(name.text(), "is not an integer from 0 on");
  }
  return static_cast<std::uint64_t>(number);
}

std::optional<std::string_view> values::data(ondemand::value& value, field_name name) {
  const auto text = string(value, name);
  if (!text) return std::nullopt;
  // In place: the text belongs to the line or to the arena, both of which are ours to write.
  char* begin = const_cast<char*>(text->data());
  const base64_result decoded = decode_base64(begin, text->size());
  if (decoded.error != nullptr) {
    fail(name.text(), std::string(decoded.error) + " at character " + std::to_string(decoded.size));
  }
  return std::string_view(begin, decoded.size);
}

/// One line being decoded. `records` has what was read of it already, the highest of which is
/// `known`.
class walk {
 public:
  walk(ondemand::document& document, std::vector<record>& records, const highest_position& known,
       std::deque<std::string>& arena, bool& replaced)
      : document_(document),
        records_(records),
        known_records_(records.size()),
        known_(known),
        values_(arena, replaced) {}

  message decode();

 private:
  template <class Body, class Take>
  Body each_field(Take take) {
    Body body{};
    document_.rewind();
    auto object = checked(document_.get_object());
    for (auto item : object) {
      ondemand::field field = checked(std::move(item));
      take(body, field.key(), field.value());
    }
    if (document_.current_location().error() != simdjson::OUT_OF_BOUNDS)
      fail({}, "has something after the JSON object");
    return body;
  }

  std::string action();
  struct position_fields {
    std::optional<std::string_view> sequence_number;
    std::uint64_t sub_sequence_number = 0;
  };
  bool take_position(position_fields& fields, ondemand::raw_json_string key,
                     ondemand::value& value);
  static std::optional<sequence_position> position_of(const position_fields& fields);
  initialize decode_initialize();
  process_records decode_process_records();
  void decode_records(ondemand::value& value, process_records& body);
  record::fields decode_record(ondemand::object object, std::ptrdiff_t index,
                               std::string& unknown_time);
  checkpoint_answer decode_checkpoint();
  decltype(message::body) decode_shutdown();

  ondemand::document& document_;
  std::vector<record>& records_;
  std::size_t known_records_;
  highest_position known_;
  values values_;
};

std::string walk::action() {
  auto object = checked(document_.get_object());
  ondemand::value value;
  const auto error = object.find_field_unordered("action").get(value);
  if (error == simdjson::NO_SUCH_FIELD) fail("action", "is missing");
  if (error) fail({}, std::string("is not valid JSON: ") + simdjson::error_message(error));
  return values_.required_string(value, {"action"});
}

message walk::decode() {
  ondemand::json_type type{};
  if (document_.type().get(type) != simdjson::SUCCESS || type != ondemand::json_type::object) {
    fail({}, "is not a JSON object");
  }
  message result{action(), unknown_action{}};
  const std::string& name = result.action;
  const auto kind = action_named(name);
  const auto nothing = [](auto&, auto, auto) {};
  if (kind == action_kind::process_records) {
    result.body = decode_process_records();
  } else if (name == "checkpoint") {
    result.body = decode_checkpoint();
  } else if (kind == action_kind::initialize) {
    result.body = decode_initialize();
  } else if (kind == action_kind::lease_lost) {
    result.body = each_field<lease_lost>(nothing);
  } else if (kind == action_kind::shard_ended) {
    result.body = each_field<shard_ended>(nothing);
  } else if (kind == action_kind::shutdown_requested) {
    result.body = each_field<shutdown_requested>(nothing);
  } else if (name == "shutdown") {
    result.body = decode_shutdown();
  } else {
    result.body = each_field<unknown_action>(nothing);
  }
  return result;
}

/// Takes one of the two fields of a position. False for another field.
bool walk::take_position(position_fields& fields, ondemand::raw_json_string key,
                         ondemand::value& value) {
  if (key == "sequenceNumber") {
    fields.sequence_number = values_.string(value, {"sequenceNumber"});
  } else if (key == "subSequenceNumber") {
    fields.sub_sequence_number = values_.sub_sequence(value, {"subSequenceNumber"});
  } else {
    return false;
  }
  return true;
}

std::optional<sequence_position> walk::position_of(const position_fields& fields) {
  if (!fields.sequence_number) return std::nullopt;
  auto position = sequence_position::parse(*fields.sequence_number, fields.sub_sequence_number);
  if (!position) {
    fail("sequenceNumber", fields.sequence_number->size() > sequence_position::capacity
                               ? describe_bad_digits(*fields.sequence_number)
                               : "is neither a decimal number nor a sentinel");
  }
  return position;
}

initialize walk::decode_initialize() {
  struct fields : position_fields {
    std::optional<std::string> shard_id;
  };
  const auto found = each_field<fields>(
      [this](fields& fields, ondemand::raw_json_string key, ondemand::value value) {
        if (key == "shardId") {
          fields.shard_id = values_.required_string(value, {"shardId"});
        } else {
          take_position(fields, key, value);
        }
      });
  if (!found.shard_id) fail("shardId", "is missing");
  return {*found.shard_id, position_of(found)};
}

process_records walk::decode_process_records() {
  bool has_records = false;
  auto body = each_field<process_records>([&](process_records& batch, ondemand::raw_json_string key,
                                              ondemand::value value) {
    if (key == "records") {
      has_records = true;
      decode_records(value, batch);
    } else if (key == "millisBehindLatest") {
      batch.millis_behind_latest = values_.time(value, {"millisBehindLatest"}, batch.unknown_time);
    }
  });
  if (!has_records) fail("records", "is missing");
  return body;
}

void walk::decode_records(ondemand::value& value, process_records& body) {
  // The last of two equal fields counts. Only the first continues what read_ahead has decoded.
  const auto known = static_cast<std::ptrdiff_t>(std::exchange(known_records_, 0));
  records_.erase(records_.begin() + known, records_.end());
  highest_position highest = std::exchange(known_, {});
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) fail("records", "is not an array");
  for (auto item : array) {
    const auto index = static_cast<std::ptrdiff_t>(records_.size());
    ondemand::value element = checked(std::move(item));
    ondemand::object object;
    if (element.get_object().get(object) != simdjson::SUCCESS) {
      fail("records[" + std::to_string(index) + "]", "is not an object");
    }
    const record::fields fields = decode_record(object, index, body.unknown_time);
    highest.take(fields.sequence_number, fields.sub_sequence_number);
    records_.emplace_back(fields);
  }
  body.largest = highest.get();
}

record::fields walk::decode_record(ondemand::object object, std::ptrdiff_t index,
                                   std::string& unknown_time) {
  record::fields to;
  auto& [data, partition_key, sequence_number, sub_sequence_number, arrival] = to;
  for (auto item : object) {
    ondemand::field field = checked(std::move(item));
    const ondemand::raw_json_string key = field.key();
    ondemand::value value = field.value();
    if (key == "data") {
      data = values_.data(value, {"data", index});
    } else if (key == "partitionKey") {
      partition_key = values_.string(value, {"partitionKey", index});
    } else if (key == "sequenceNumber") {
      const auto digits = values_.string(value, {"sequenceNumber", index});
      const field_name name{"sequenceNumber", index};
      if (!digits) fail(name.text(), "is null");
      if (!is_sequence_number(*digits)) fail(name.text(), describe_bad_digits(*digits));
      sequence_number = *digits;
    } else if (key == "approximateArrivalTimestamp") {
      arrival = values_.time(value, {"approximateArrivalTimestamp", index}, unknown_time);
    } else if (key == "subSequenceNumber") {
      sub_sequence_number = values_.sub_sequence(value, {"subSequenceNumber", index});
    }
  }
  if (sequence_number.empty()) fail(field_name{"sequenceNumber", index}.text(), "is missing");
  return to;
}

checkpoint_answer walk::decode_checkpoint() {
  struct fields : position_fields {
    std::optional<std::string> error;
  };
  const auto found = each_field<fields>(
      [this](fields& fields, ondemand::raw_json_string key, ondemand::value value) {
        if (take_position(fields, key, value) || key != "error") return;
        const auto text = values_.string(value, {"error"});
        if (text) fields.error = std::string(*text);
      });
  return {found.error, position_of(found)};
}

decltype(message::body) walk::decode_shutdown() {
  const auto reason = each_field<std::optional<std::string>>(
      [this](auto& target, ondemand::raw_json_string key, ondemand::value value) {
        if (key == "reason") target = values_.required_string(value, {"reason"});
      });
  if (!reason) fail("reason", "is missing");
  const auto is_end = is_shard_end(*reason);
  if (!is_end) fail("reason", unknown_shutdown_reason);
  if (*is_end) return shard_ended{};
  return lease_lost{};
}

/// Room for more than this line, lest each slightly longer one allocates again.
simdjson::error_code make_room(ondemand::parser& parser, std::size_t size) {
  if (parser.capacity() >= size) return simdjson::SUCCESS;
  return parser.allocate(std::bit_ceil(std::max(size, std::size_t{512})), parser.max_depth());
}

}  // namespace

struct decoder::working_memory {
  ondemand::parser parser;
  fast_batch_parser batch;
};

decoder::decoder() : memory_(std::make_unique<working_memory>()) {}
decoder::~decoder() = default;

void decoder::release_memory() { memory_->parser = ondemand::parser(); }

void decoder::read_ahead(char* line, std::size_t size, std::vector<record>& records,
                         std::deque<std::string>& arena) {
  if (!std::exchange(is_ahead_, true)) {
    records.clear();
    arena.clear();
  }
  std::memset(line + size, 0, fast_batch_parser::look_ahead);
  memory_->batch.read_ahead(line, size, records);
}

std::variant<message, decode_error> decoder::decode(char* line, std::size_t length,
                                                    std::vector<record>& records,
                                                    std::deque<std::string>& arena,
                                                    bool& replaced_invalid_utf8) {
  replaced_invalid_utf8 = false;
  if (!std::exchange(is_ahead_, false)) {
    records.clear();
    arena.clear();
  }
  // Defined values for those who look ahead; the bytes are the caller's to give.
  std::memset(line + length, 0, padding);
  const fast_batch_parser::result known = memory_->batch.finish(line, length, records);
  if (known.is_whole) {
    return message{action_name(action_kind::process_records),
                   process_records{known.millis_behind_latest, known.highest.get()}};
  }
  if (records.empty()) {
    if (auto answer = parse_success(line, length)) return message{"checkpoint", *std::move(answer)};
  } else {
    constexpr std::string_view prologue = fast_batch_parser::prologue;
    line += known.rest - prologue.size();
    length -= known.rest - prologue.size();
    prologue.copy(line, prologue.size());
  }
  try {
    return decode_json(line, length, records, known.highest, arena, replaced_invalid_utf8);
  } catch (failure& bad) {
    records.clear();
    return std::move(bad.error);
  }
}

message decoder::decode_json(char* line, std::size_t length, std::vector<record>& records,
                             const highest_position& known, std::deque<std::string>& arena,
                             bool& replaced_invalid_utf8) {
  if (is_blank({line, length})) fail({}, "is empty");
  ondemand::parser& parser = memory_->parser;
  ondemand::document document;
  auto error = make_room(parser, length);
  if (!error) error = parser.iterate(line, length, length + padding).get(document);
  if (error == simdjson::UTF8_ERROR) {
    replaced_invalid_utf8 = true;
    std::string& copy = arena.emplace_back(replace_invalid_utf8({line, length}));
    const std::size_t size = copy.size();
    copy.append(padding, '\0');
    error = make_room(parser, size);
    if (!error) error = parser.iterate(copy.data(), size, size + padding).get(document);
  }
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  if (error) fail({}, std::string("is not valid JSON: ") + simdjson::error_message(error));
  return walk(document, records, known, arena, replaced_invalid_utf8).decode();
}

}  // namespace kclxx::protocol
