// SPDX-License-Identifier: Apache-2.0
#include "protocol/decoder.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/decimal.hpp"
#include "protocol/json_string.hpp"
#include "protocol/plain_text.hpp"

namespace kclxx::protocol {

static_assert(decoder::padding >= fast_batch_parser::look_ahead);

namespace {

// A line of JSON as events, by nlohmann_json's parser. The parser copies each string, refuses
// numbers that no double holds, takes a NUL for the end and skips a byte order mark. The wire needs
// none of that, so the first classes here set it right.

/// A value of a line; for an array or an object, its beginning.
struct json_value {
  enum class type { null, boolean, integer, other_number, string, array, object };

  type kind;
  std::int64_t integer = 0;
  double number = 0;        ///< of other_number, which no std::int64_t holds. It may be infinite.
  std::string_view text{};  ///< the string; other_number and a boolean as they are written
};

/// A double that the parser takes for finite, whatever its value is.
struct unbounded_double {
  double value;

  // NOLINTBEGIN(google-explicit-constructor): the parser converts it
  unbounded_double() = default;
  constexpr unbounded_double(double number) : value(number) {}
  operator double&() { return value; }
  operator double() const {
    using limits = std::numeric_limits<double>;
    return std::clamp(value, limits::lowest(), limits::max());
  }
  // NOLINTEND(google-explicit-constructor)
};

/// The characters of a line for the parser. It gets only the quotes of a string without escapes:
/// that text is in the line already.
class json_line {
 public:
  /// Precondition: line[0, size) is UTF-8 without a NUL, and at least eight zeros follow it.
  json_line(char* line, std::size_t size) : at_(line), end_(line + size) {}

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    /// The end of every line.
    iterator() = default;
    explicit iterator(json_line& line) : line_(&line) {}
    char operator*() const noexcept { return *line_->at_; }
    iterator& operator++() noexcept {
      line_->pass_character();
      return *this;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.is_at_end() == b.is_at_end();
    }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return !(a == b); }

   private:
    [[nodiscard]] bool is_at_end() const noexcept {
      if (line_ == nullptr) return true;
      if (line_->at_ != line_->end_) return false;
      line_->is_too_short_ = true;
      return true;
    }

    json_line* line_ = nullptr;
  };

  /// Whether the parser wanted a character after the last one.
  [[nodiscard]] bool is_too_short() const noexcept { return is_too_short_; }
  /// The last string began here, after its quote.
  [[nodiscard]] char* string_begin() const noexcept { return string_begin_; }
  /// Whether the last string has no escapes, so that the line has its text.
  [[nodiscard]] bool is_string_plain() const noexcept { return plain_end_ != nullptr; }
  /// The text of the last string, which is plain.
  [[nodiscard]] std::string_view plain_string() const noexcept {
    return {string_begin_, static_cast<std::size_t>(plain_end_ - string_begin_)};
  }

 private:
  enum class place { outside, in_string, after_backslash };

  void pass_character() noexcept {
    const char passed = *at_++;
    if (place_ == place::outside) {
      if (passed == '"') begin_string();
    } else if (place_ == place::after_backslash) {
      place_ = place::in_string;
    } else if (passed == '\\') {
      place_ = place::after_backslash;
    } else if (passed == '"') {
      place_ = place::outside;
    }
  }

  void begin_string() noexcept {
    place_ = place::in_string;
    string_begin_ = at_;
    plain_end_ = take_plain_text(at_).end;
    if (*plain_end_ == '"') {
      at_ += plain_end_ - at_;
    } else {
      plain_end_ = nullptr;
    }
  }

  char* at_;
  const char* end_;
  char* string_begin_ = nullptr;
  const char* plain_end_ = nullptr;
  place place_ = place::outside;
  bool is_too_short_ = false;
};

/// The parser calls it with events. `Walk` has these functions:
///   void on_key(std::string_view)     a field of an object that was entered
///   void on_value(const json_value&)  a scalar; or an array or object that is not entered
///   bool enters(json_value::type)     whether events of this array or object are wanted
///   void on_end()                     an array or object that was entered has ended
///   void on_bad_json()                always throws
///   bool is_done()                    no further event is wanted
/// A text lives as long as the call, unless the line has it (json_line::is_string_plain).
template <class Walk>
class json_events {
 public:
  // The parser knows these functions by their names.
  bool null() { return take_value({json_value::type::null}); }
  bool boolean(bool is_true) {
    return take_value({json_value::type::boolean, 0, 0, is_true ? "true" : "false"});
  }
  bool number_integer(std::int64_t number) {
    return take_value({json_value::type::integer, number});
  }
  bool number_unsigned(std::uint64_t number) {
    constexpr auto max = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    if (number <= max) return number_integer(static_cast<std::int64_t>(number));
    return number_float(static_cast<double>(number), std::to_string(number));
  }
  bool number_float(unbounded_double number, const std::string& text) {
    return take_value({json_value::type::other_number, 0, number.value, text});
  }
  bool string(const std::string& text) {
    return take_value({json_value::type::string, 0, 0, string_text(text)});
  }
  template <class Bytes>
  bool binary(Bytes&) {  // JSON has no such value
    return false;
  }
  bool start_object(std::size_t) { return begin(json_value::type::object); }
  bool start_array(std::size_t) { return begin(json_value::type::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(const std::string& name) {
    if (skipped_levels_ == 0) walk().on_key(string_text(name));
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception&) {
    walk().on_bad_json();
    return false;
  }

 protected:
  explicit json_events(json_line& line) : line_(line) {}

  /// Nesting takes a bit of memory for each level, and no stack.
  void parse() {
    using json = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t,
                                      std::uint64_t, unbounded_double>;
    json::sax_parse(json_line::iterator(line_), json_line::iterator(), this);
  }

  json_line& line_;

 private:
  Walk& walk() { return static_cast<Walk&>(*this); }
  std::string_view string_text(std::string_view unescaped) const {
    return line_.is_string_plain() ? line_.plain_string() : unescaped;
  }
  bool take_value(const json_value& value) {
    if (skipped_levels_ > 0) return true;
    walk().on_value(value);
    return !walk().is_done();
  }
  bool begin(json_value::type kind) {
    if (skipped_levels_ > 0) {
      ++skipped_levels_;
    } else if (!walk().enters(kind)) {
      walk().on_value({kind});
      skipped_levels_ = 1;
    }
    return true;
  }
  bool end() {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
    } else {
      walk().on_end();
    }
    return true;
  }

  std::size_t skipped_levels_ = 0;
};

// A bad line is the end of the process, not a path to make fast.
struct failure {
  decode_error error;
};

[[noreturn]] void fail(std::string field, std::string problem) {
  throw failure{{std::move(problem), std::move(field)}};
}

[[noreturn]] void fail_bad_json(std::string place, const json_line& line) {
  fail(std::move(place),
       line.is_too_short() ? "is not valid JSON: it ends too early" : "is not valid JSON");
}

/// Finds the action, which decides what the other fields are. Of two actions the first counts.
class action_search : public json_events<action_search> {
 public:
  explicit action_search(json_line& line) : json_events(line) {}

  std::string find() {
    parse();
    if (!action_) fail("action", "is missing");
    return *std::move(action_);
  }

  void on_key(std::string_view name) { is_at_action_ = name == "action"; }
  void on_value(const json_value& value) {
    if (!is_at_action_) return;
    if (value.kind == json_value::type::null) fail("action", "is null");
    if (value.kind != json_value::type::string) fail("action", "is not a string");
    action_ = value.text;
  }
  bool enters(json_value::type /*kind*/) { return !std::exchange(is_in_object_, true); }
  void on_end() {}
  [[noreturn]] void on_bad_json() { fail_bad_json({}, line_); }
  [[nodiscard]] bool is_done() const { return action_.has_value(); }

 private:
  bool is_in_object_ = false;
  bool is_at_action_ = false;
  std::optional<std::string> action_;
};

/// Reads the fields of a line. Texts are views into the line: a text with escapes is written over
/// its escaped form, which is longer. `records` has the records that were read ahead, and `known`
/// is the highest position among them.
class field_reader : public json_events<field_reader> {
 public:
  field_reader(json_line& line, const std::string& action, std::vector<record>& records,
               const highest_position& known)
      : json_events(line),
        action_(action),
        kind_(action_named(action)),
        records_(records),
        known_records_(records.size()),
        known_(known) {}

  decltype(message::body) read();

  void on_key(std::string_view name) { field_ = kept(name); }
  void on_value(const json_value& value);
  bool enters(json_value::type kind);
  void on_end();
  [[noreturn]] void on_bad_json() const;
  [[nodiscard]] static bool is_done() { return false; }

 private:
  enum class level { outside, line, records, record, after };

  /// The name of what is being read: "records[3].data".
  [[nodiscard]] std::string place() const;
  [[noreturn]] void fail_here(std::string problem) const { fail(place(), std::move(problem)); }

  // The value of the present field.
  [[nodiscard]] std::string_view kept(std::string_view text) const;
  [[nodiscard]] std::optional<std::string_view> string(const json_value& value) const;
  [[nodiscard]] std::string required_string(const json_value& value) const;
  /// std::nullopt for a time that no record can show. The batch names the first such time.
  std::optional<std::chrono::milliseconds> time(const json_value& value);
  [[nodiscard]] std::uint64_t sub_sequence(const json_value& value) const;
  /// Decodes base64 in place.
  [[nodiscard]] std::optional<std::string_view> data(const json_value& value) const;

  void take_line_field(const json_value& value);
  void take_position_field(const json_value& value);
  void take_record_field(const json_value& value);
  void begin_records();
  void end_record();

  [[nodiscard]] std::optional<sequence_position> position() const;

  const std::string& action_;
  std::optional<action_kind> kind_;
  std::vector<record>& records_;
  std::size_t known_records_;
  highest_position known_;

  level level_ = level::outside;
  std::string_view field_;  // empty unless its value comes next

  // What was read.
  record::fields record_;
  highest_position highest_;
  process_records batch_;
  bool has_records_ = false;
  std::optional<std::string> shard_id_;
  std::optional<std::string_view> sequence_number_;
  std::uint64_t sub_sequence_number_ = 0;
  std::optional<std::string> error_;
  std::optional<std::string> reason_;
};

std::string field_reader::place() const {
  constexpr std::size_t longest_field = 40;
  std::string text;
  if (level_ == level::records || level_ == level::record) {
    text = "records[" + std::to_string(records_.size()) + "]";
    if (!field_.empty()) text += '.';
  }
  return text.append(field_.substr(0, longest_field));
}

std::string_view field_reader::kept(std::string_view text) const {
  if (line_.is_string_plain()) return text;
  std::memcpy(line_.string_begin(), text.data(), text.size());
  return {line_.string_begin(), text.size()};
}

std::optional<std::string_view> field_reader::string(const json_value& value) const {
  if (value.kind == json_value::type::null) return std::nullopt;
  if (value.kind != json_value::type::string) fail_here("is not a string");
  return kept(value.text);
}

std::string field_reader::required_string(const json_value& value) const {
  const auto text = string(value);
  if (!text) fail_here("is null");
  return std::string(*text);
}

std::string excerpt_of(const json_value& value) {
  using type = json_value::type;
  if (value.kind == type::integer) return std::to_string(value.integer);
  if (value.kind == type::array) return "an array";
  if (value.kind == type::object) return "an object";
  const std::string text(value.text.substr(0, 40));
  return value.kind == type::string ? '"' + text + '"' : text;
}

std::optional<std::chrono::milliseconds> field_reader::time(const json_value& value) {
  using type = json_value::type;
  if (value.kind == type::null) return std::nullopt;
  constexpr std::int64_t limit = most_milliseconds;
  // Below 2^53, so that a double has it exactly.
  constexpr auto end = static_cast<double>(limit + 1);
  if (value.kind == type::integer && value.integer >= -limit && value.integer <= limit) {
    return std::chrono::milliseconds(value.integer);
  }
  if (value.kind == type::other_number && value.number > -end && value.number < end) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(value.number));
  }
  std::string& unknown = batch_.unknown_time;
  if (unknown.empty()) unknown = place() + " is " + excerpt_of(value);
  return std::nullopt;
}

std::uint64_t field_reader::sub_sequence(const json_value& value) const {
  if (value.kind == json_value::type::null) return 0;
  // The daemon's own type has 63 bits: it drops a checkpoint with a higher number.
  if (value.kind != json_value::type::integer || value.integer < 0) {
    fail_here("is not an integer from 0 on");
  }
  return static_cast<std::uint64_t>(value.integer);
}

std::optional<std::string_view> field_reader::data(const json_value& value) const {
  const auto text = string(value);
  if (!text) return std::nullopt;
  // The text belongs to the line, which is ours to write.
  char* begin = const_cast<char*>(text->data());
  const base64_result decoded = decode_base64(begin, text->size());
  if (decoded.error != nullptr) {
    fail_here(std::string(decoded.error) + " at character " + std::to_string(decoded.size));
  }
  return std::string_view(begin, decoded.size);
}

void field_reader::take_position_field(const json_value& value) {
  if (field_ == "sequenceNumber") {
    sequence_number_ = string(value);
  } else if (field_ == "subSequenceNumber") {
    sub_sequence_number_ = sub_sequence(value);
  }
}

void field_reader::take_line_field(const json_value& value) {
  if (kind_ == action_kind::process_records) {
    if (field_ == "records") fail_here("is not an array");
    if (field_ == "millisBehindLatest") batch_.millis_behind_latest = time(value);
  } else if (kind_ == action_kind::initialize) {
    if (field_ == "shardId") shard_id_ = required_string(value);
    take_position_field(value);
  } else if (action_ == "checkpoint") {
    if (field_ == "error") error_ = string(value);
    take_position_field(value);
  } else if (action_ == "shutdown") {
    if (field_ == "reason") reason_ = required_string(value);
  }
}

void field_reader::take_record_field(const json_value& value) {
  auto& [bytes, partition_key, sequence_number, sub_sequence_number, arrival] = record_;
  if (field_ == "data") {
    bytes = data(value);
  } else if (field_ == "partitionKey") {
    partition_key = string(value);
  } else if (field_ == "sequenceNumber") {
    const auto digits = string(value);
    if (!digits) fail_here("is null");
    if (!is_sequence_number(*digits)) fail_here(describe_bad_digits(*digits));
    sequence_number = *digits;
  } else if (field_ == "approximateArrivalTimestamp") {
    arrival = time(value);
  } else if (field_ == "subSequenceNumber") {
    sub_sequence_number = sub_sequence(value);
  }
}

void field_reader::on_value(const json_value& value) {
  if (level_ == level::record) {
    take_record_field(value);
  } else if (level_ == level::records) {
    fail_here("is not an object");
  } else {
    take_line_field(value);
  }
  field_ = {};
}

bool field_reader::enters(json_value::type kind) {
  const bool is_object = kind == json_value::type::object;
  if (level_ == level::outside) {
    level_ = level::line;
  } else if (level_ == level::line && kind_ == action_kind::process_records && !is_object &&
             field_ == "records") {
    begin_records();
  } else if (level_ == level::records && is_object) {
    level_ = level::record;
    record_ = {};
  } else {
    return false;
  }
  field_ = {};
  return true;
}

void field_reader::on_end() {
  if (level_ == level::record) {
    end_record();
  } else if (level_ == level::records) {
    batch_.largest = highest_.get();
    level_ = level::line;
  } else {
    level_ = level::after;
  }
}

/// The last of two fields `records` counts. Only the first continues what read_ahead has decoded.
void field_reader::begin_records() {
  level_ = level::records;
  has_records_ = true;
  const auto known = static_cast<std::ptrdiff_t>(std::exchange(known_records_, 0));
  records_.erase(records_.begin() + known, records_.end());
  highest_ = std::exchange(known_, {});
}

void field_reader::end_record() {
  if (record_.sequence_number.empty()) {
    field_ = "sequenceNumber";
    fail_here("is missing");
  }
  highest_.take(record_.sequence_number, record_.sub_sequence_number);
  records_.emplace_back(record_);
  level_ = level::records;
}

void field_reader::on_bad_json() const {
  if (level_ == level::after) fail({}, "has something after the JSON object");
  fail_bad_json(place(), line_);
}

std::optional<sequence_position> field_reader::position() const {
  if (!sequence_number_) return std::nullopt;
  auto position = sequence_position::parse(*sequence_number_, sub_sequence_number_);
  if (!position) {
    fail("sequenceNumber", sequence_number_->size() > sequence_position::capacity
                               ? describe_bad_digits(*sequence_number_)
                               : "is neither a decimal number nor a sentinel");
  }
  return position;
}

decltype(message::body) field_reader::read() {
  parse();
  if (action_ == "checkpoint") return checkpoint_answer{error_, position()};
  if (action_ == "shutdown") {
    if (!reason_) fail("reason", "is missing");
    const auto is_end = is_shard_end(*reason_);
    if (!is_end) fail("reason", "is none of TERMINATE, SHARD_END, ZOMBIE and LEASE_LOST");
    if (*is_end) return shard_ended{};
    return lease_lost{};
  }
  if (!kind_) return unknown_action{};
  switch (*kind_) {
    case action_kind::initialize:
      if (!shard_id_) fail("shardId", "is missing");
      return initialize{*shard_id_, position()};
    case action_kind::process_records:
      if (!has_records_) fail("records", "is missing");
      return std::move(batch_);
    case action_kind::lease_lost:
      return lease_lost{};
    case action_kind::shard_ended:
      return shard_ended{};
    case action_kind::shutdown_requested:
      return shutdown_requested{};
  }
  return unknown_action{};
}

}  // namespace

void decoder::read_ahead(char* line, std::size_t size, std::vector<record>& records,
                         std::deque<std::string>& arena) {
  if (!std::exchange(is_ahead_, true)) {
    records.clear();
    arena.clear();
  }
  std::memset(line + size, 0, fast_batch_parser::look_ahead);
  batch_.read_ahead(line, size, records);
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
  // The parsers look ahead, and zeros end every text. The caller gives these bytes.
  std::memset(line + length, 0, padding);
  const fast_batch_parser::result known = batch_.finish(line, length, records);
  if (known.is_whole) {
    return message{action_name(action_kind::process_records),
                   process_records{known.millis_behind_latest, known.highest.get()}};
  }
  if (records.empty()) {
    if (auto answer = parse_success(line, length)) return message{"checkpoint", *std::move(answer)};
  } else {
    constexpr std::string_view prologue = fast_batch_parser::prologue;
    line += known.unparsed_offset - prologue.size();
    length -= known.unparsed_offset - prologue.size();
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
  std::string_view text(line, length);
  if (is_blank(text)) fail({}, "is empty");
  if (text[text.find_first_not_of(white_space)] != '{') fail({}, "is not a JSON object");
  if (text.find('\0') != std::string_view::npos) fail({}, "is not valid JSON: it has a NUL");
  if (!is_utf8(text)) {
    replaced_invalid_utf8 = true;
    std::string& copy = arena.emplace_back(replace_invalid_utf8(text));
    length = copy.size();
    copy.append(padding, '\0');
    line = copy.data();
  }
  if (replace_half_surrogates(line, length)) replaced_invalid_utf8 = true;
  json_line search(line, length);
  message result{action_search(search).find(), unknown_action{}};
  json_line fields(line, length);
  result.body = field_reader(fields, result.action, records, known).read();
  return result;
}

}  // namespace kclxx::protocol
