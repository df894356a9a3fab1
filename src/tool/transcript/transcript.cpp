// SPDX-License-Identifier: Apache-2.0
// The header is the only part of a transcript that is read as JSON.
#include "tool/transcript/transcript.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/json_string.hpp"
#include "tool/foreign_json.hpp"

namespace kclxx::transcript {

namespace {

/// How many bytes are read at a time: few enough to be searched while they are in the cache, and
/// enough for few system calls.
constexpr std::size_t read_size = std::size_t{256} << 10;

/// The version of the format, the value of "kclxx_transcript".
constexpr int format_version = 1;

using nlohmann::json;
using ordered = nlohmann::ordered_json;

/// A header or an initialize is small. A longer first line can only be a batch.
constexpr std::size_t max_parsed = std::size_t{1} << 20;
constexpr std::string_view action_first = R"({"action")";

struct not_a_transcript {
  std::string why;
};

header parse_header(const json& value) {
  const json& version = value.at("kclxx_transcript");
  if (version != format_version) {
    throw not_a_transcript{"is of version " + version.dump(-1, ' ', true) +
                           "; this kclxx reads version " + std::to_string(format_version)};
  }
  try {
    header result{
        tool::find_foreign_text(value, "shard"), tool::foreign_text(value, "started"), {}};
    const json* const command = tool::find_foreign(value, "command");
    if (command == nullptr) throw tool::foreign_json_error("\"command\" is missing");
    result.command = command->get<std::vector<std::string>>();
    return result;
  } catch (const tool::foreign_json_error& error) {
    throw not_a_transcript{std::string("the header's ") + error.what()};
  } catch (const json::type_error&) {
    throw not_a_transcript{"the header's \"command\" is no list of texts"};
  }
}

/// The line without the blanks at both ends. A carriage return counts as a blank.
std::string_view without_blanks(std::string_view line) noexcept {
  constexpr std::string_view blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  return line.substr(0, line.find_last_not_of(blanks) + 1);
}

/// Whether the line looks like an object: then it stands unchanged in a transcript.
bool is_object(std::string_view line) noexcept {
  return line.size() >= 2 && line.front() == '{' && line.back() == '}';
}

/// Walks through the fixed beginning of a line. Spaces may follow : and , as Python's json.dumps
/// writes them.
class cursor {
 public:
  explicit cursor(std::string_view text) : unread_(text) {}

  /// Moves past `text`, if it comes next. False: it does not.
  bool eat(std::string_view text) {
    if (!unread_.starts_with(text)) return false;
    unread_.remove_prefix(text.size());
    return true;
  }
  /// Moves past a field's name. `quoted_name_and_colon`: "at":
  bool eat_key(std::string_view quoted_name_and_colon) {
    const bool is_there = eat(quoted_name_and_colon);
    if (is_there) skip_spaces();
    return is_there;
  }
  bool eat_comma() { return eat_key(","); }
  template <class Number>
  bool eat_number(Number& value) {
    const auto [end, error] =
        std::from_chars(unread_.data(), unread_.data() + unread_.size(), value);
    if (error != std::errc() || value < 0) return false;
    unread_.remove_prefix(static_cast<std::size_t>(end - unread_.data()));
    return true;
  }
  /// Gives what is before the closing brace. False: the line ends without one.
  bool eat_value(std::string_view& value) {
    if (!unread_.ends_with('}')) return false;
    value = without_blanks(unread_.substr(0, unread_.size() - 1));
    return true;
  }

 private:
  void skip_spaces() {
    while (unread_.starts_with(' ')) unread_.remove_prefix(1);
  }

  std::string_view unread_;
};

const char* parse_bytes(std::string_view token, std::string& text) {
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') {
    return "\"bytes\" is not a string, or something comes after it";
  }
  text.assign(token.substr(1, token.size() - 2));
  const auto decoded = protocol::decode_base64(text.data(), text.size());
  if (decoded.error != nullptr) return "\"bytes\" is not base64, or something comes after it";
  text.resize(decoded.size);
  return nullptr;
}

const char* parse_line(cursor input, entry& out, std::string& text) {
  if (input.eat(R"("child")")) {
    out.kind = entry_kind::child_line;
  } else if (input.eat(R"("daemon")")) {
    out.kind = entry_kind::daemon_line;
  } else {
    return "\"from\" is neither \"daemon\" nor \"child\"";
  }
  enum { raw, escaped, base64, unknown } form = unknown;
  bool has_more = input.eat_comma();
  if (has_more && input.eat_key(R"("length":)")) {
    if (!input.eat_number(out.whole_length)) return "\"length\" is not a number";
    if (out.kind == entry_kind::daemon_line) return "the line was too long to be recorded";
    has_more = input.eat_comma();
  }
  if (has_more) {
    form = input.eat_key(R"("line":)")    ? raw
           : input.eat_key(R"("text":)")  ? escaped
           : input.eat_key(R"("bytes":)") ? base64
                                          : unknown;
  }
  if (form == unknown) return "\"from\" is not followed by \"line\", \"text\" or \"bytes\"";
  std::string_view value;
  if (!input.eat_value(value)) return "is damaged: it does not end with }";
  if (form == raw) {
    if (out.whole_length > 0) return "\"length\" does not belong to \"line\"";
    out.line = value;
    return is_object(value) ? nullptr : "\"line\" is not an object, or something comes after it";
  }
  if (form == base64) {
    if (const char* problem = parse_bytes(value, text)) return problem;
  } else {
    // The parser would take a NUL for the end of the value.
    const bool may_be_string = value.starts_with('"') && value.find('\0') == value.npos;
    const json plain = may_be_string ? json::parse(value, nullptr, false) : json();
    if (!plain.is_string()) return "\"text\" is not a string, or something comes after it";
    text = plain.get<std::string>();
  }
  out.line = text;
  return nullptr;
}

const char* parse_event(cursor input, entry& out) {
  bool is_whole = true;
  if (input.eat(R"("end_of_input")")) {
    out.kind = entry_kind::end_of_input;
  } else if (input.eat(R"("end_of_output")")) {
    out.kind = entry_kind::end_of_output;
  } else if (input.eat(R"("exit")")) {
    is_whole = input.eat_comma();
    out.kind = input.eat_key(R"("signal":)") ? entry_kind::killed : entry_kind::exit;
    is_whole = is_whole && (out.kind == entry_kind::killed || input.eat_key(R"("status":)")) &&
               input.eat_number(out.number);
  } else {
    return "\"event\" is none of \"exit\", \"end_of_input\", \"end_of_output\"";
  }
  std::string_view value;
  if (is_whole && input.eat_value(value) && value.empty()) return nullptr;
  return "the event is damaged, or something comes after it";
}

/// Reads a line of a transcript. `out.line` becomes a view of `line`, or of `text` where the line
/// was escaped. Returns null, or what is wrong.
const char* parse_entry(std::string_view line, entry& out, std::string& text) {
  cursor input(line);
  std::int64_t microseconds = 0;
  if (!input.eat("{") || !input.eat_key(R"("at":)") || !input.eat_number(microseconds) ||
      !input.eat_comma()) {
    return "does not begin with {\"at\":<microseconds>,";
  }
  // Differences of times are counted in nanoseconds, which must not overflow.
  if (std::chrono::microseconds(microseconds) > std::chrono::years(100)) {
    return "\"at\" is more than 100 years after the beginning";
  }
  out.at = std::chrono::microseconds(microseconds);
  if (input.eat_key(R"("from":)")) return parse_line(input, out, text);
  if (input.eat_key(R"("event":)")) return parse_event(input, out);
  return "\"at\" is not followed by \"from\" or \"event\"";
}

/// The header; std::nullopt when the file has the daemon's lines alone. Errors: not_a_transcript.
std::optional<header> parse_first_line(std::string_view line) {
  if (line.starts_with(action_first) && line.back() == '}') return std::nullopt;
  const not_a_transcript unknown{
      "is neither a transcript's header nor a line of the daemon (an object with \"action\")"};
  if (line.size() > max_parsed) throw unknown;
  try {
    const json value = tool::parse_foreign(line);
    if (value.contains("kclxx_transcript")) return parse_header(value);
    if (value.contains("action")) return std::nullopt;
  } catch (const tool::foreign_json_error& error) {
    throw not_a_transcript{unknown.why + ": it " + error.what()};
  }
  throw unknown;
}

/// The header's line. Bytes of the command that are not UTF-8 become U+FFFD.
std::string to_line(const header& header) {
  ordered line;
  line["kclxx_transcript"] = format_version;
  line["shard"] = header.shard ? ordered(*header.shard) : ordered();
  line["started"] = header.started;
  line["command"] = header.command;
  return line.dump(-1, ' ', false, ordered::error_handler_t::replace);
}

constexpr std::string_view end_of_entry = "}\n";

bool is_line(const entry& entry) {
  return entry.kind == entry_kind::daemon_line || entry.kind == entry_kind::child_line;
}

void append_value(std::string& out, std::string_view line) {
  if (protocol::replace_invalid_utf8(line) == line) {
    out.append("\"text\":");
    protocol::append_quoted(out, line);
  } else {
    out.append("\"bytes\":\"");
    protocol::append_base64(out, line);
    out.append("\"");
  }
}

void append_event(std::string& out, const entry& entry) {
  switch (entry.kind) {
    case entry_kind::exit:
      out.append("\"exit\",\"status\":").append(std::to_string(entry.number));
      break;
    case entry_kind::killed:
      out.append("\"exit\",\"signal\":").append(std::to_string(entry.number));
      break;
    case entry_kind::end_of_input:
      out.append("\"end_of_input\"");
      break;
    default:
      out.append("\"end_of_output\"");
  }
}

}  // namespace

std::string format_time(std::chrono::system_clock::time_point date) {
  using namespace std::chrono;
  const auto since = duration_cast<microseconds>(date.time_since_epoch());
  const auto whole = floor<seconds>(since);
  const std::time_t time = whole.count();
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string micros = std::to_string((since - whole).count());
  micros.insert(0, 6 - micros.size(), '0');
  return std::string(text.data(), length) + "." + micros + "Z";
}

std::optional<std::string> initialized_shard(std::string_view line) {
  if (line.size() > max_parsed) return std::nullopt;
  try {
    const json value = tool::parse_foreign(line);
    const json* const action = tool::find_foreign(value, "action");
    if (action == nullptr || *action != "initialize") return std::nullopt;
    return tool::find_foreign_text(value, "shardId");
  } catch (const tool::foreign_json_error&) {  // the line is recorded all the same
    return std::nullopt;
  }
}

transcript_error::transcript_error(const std::string& name, std::size_t line_number,
                                   const std::string& message)
    : std::runtime_error(name + ":" + std::to_string(line_number) + ": " + message),
      line_number_(line_number),
      problem_at_(std::string_view(this->what()).size() - message.size()) {}

reader::reader(byte_source& source, std::string name, std::size_t max_line)
    : source_(source), name_(std::move(name)), max_line_(max_line) {
  std::string_view line;
  if (!next_line(line)) {
    line_number_ = 1;
    fail("the file is empty");
  }
  try {
    header_ = parse_first_line(line);
  } catch (const not_a_transcript& problem) {
    fail(problem.why);
  }
  if (!header_) first_line_ = line;
}

bool reader::next(entry& out) {
  std::string_view line;
  if (first_line_) {
    line = *std::exchange(first_line_, std::nullopt);
  } else if (!next_line(line)) {
    return false;
  }
  out = entry{};
  out.line_number = line_number_;
  if (header_) {
    if (const char* problem = parse_entry(line, out, text_)) fail(problem);
  } else if (is_object(line)) {
    out.line = line;
  } else {
    fail("is not a line of the daemon: a JSON object was expected");
  }
  return true;
}

void reader::fail(const std::string& message) const {
  throw transcript_error(name_, line_number_, message);
}

bool reader::next_line(std::string_view& line) {
  while (read_line(line)) {
    line = without_blanks(line);
    if (!line.empty()) return true;
  }
  return false;
}

bool reader::read_line(std::string_view& line) {
  bool is_whole = lines_.next(line);
  while (!is_whole && lines_.rest().size() <= max_line_) {
    const std::size_t size = source_.read(lines_.prepare(read_size), read_size);
    if (size == 0) break;
    lines_.commit(size);
    is_whole = lines_.next(line);
  }
  if (!is_whole) line = lines_.rest();
  if (!is_whole && without_blanks(line).empty()) return false;
  ++line_number_;
  if (line.size() > max_line_) fail("is longer than the limit on lines");
  if (!is_whole) fail("is cut off: the file ends without a newline");
  return true;
}

void writer::write(const header& header) {
  const std::string line = to_line(header) + "\n";
  const std::array<std::string_view, 1> pieces{line};
  sink_.write(pieces);
}

void writer::write(const entry& entry, bool is_unfinished) {
  begin_text(entry);
  if (is_line(entry)) {
    if (!is_unfinished && entry.whole_length == 0 && is_object(entry.line)) {
      text_.append("\"line\":");
      const std::array<std::string_view, 3> pieces{text_, entry.line, end_of_entry};
      sink_.write(pieces);
      return;
    }
    append_value(text_, entry.line);
  } else {
    append_event(text_, entry);
  }
  text_.append(end_of_entry);
  const std::array<std::string_view, 1> pieces{text_};
  sink_.write(pieces);
}

// Begins text_ with everything that comes before the line's value, or the event.
void writer::begin_text(const entry& entry) {
  text_.assign("{\"at\":");
  text_.append(std::to_string(entry.at.value_or(std::chrono::microseconds(0)).count()));
  if (is_line(entry)) {
    text_.append(entry.kind == entry_kind::child_line ? ",\"from\":\"child\","
                                                      : ",\"from\":\"daemon\",");
    if (entry.whole_length > 0) {
      text_.append("\"length\":").append(std::to_string(entry.whole_length)).append(",");
    }
  } else {
    text_.append(",\"event\":");
  }
}

}  // namespace kclxx::transcript
