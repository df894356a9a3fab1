// SPDX-License-Identifier: Apache-2.0
#include "protocol/fast_batch_parser.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "protocol/base64.hpp"
#include "protocol/decimal.hpp"
#include "protocol/json_string.hpp"
#include "protocol/plain_text.hpp"

namespace kclxx::protocol {

namespace {

/// Marks the first character that is no digit; the characters after it may be marked wrongly.
constexpr word non_digits(word text) noexcept {
  const word values = text ^ each('0');
  return (values | (values + each(6))) & each(0xf0);
}

/// The number that eight digits are, each less '0'. Digits are joined to pairs, then to fours, then
/// to eight, each time with one multiplication.
constexpr std::uint64_t value_of_digits(word digits) noexcept {
  const word joined = digits * 10 + (digits >> 8U);
  constexpr word pairs = 0x000000ff000000ffU;
  return ((joined & pairs) * (100 + (std::uint64_t{1'000'000} << 32U)) +
          ((joined >> 16U) & pairs) * (1 + (std::uint64_t{10'000} << 32U))) >>
         32U;
}

const char* end_of_digits(const char* text) {
  for (;; text += sizeof(word)) {
    const word marks = non_digits(load(text));
    if (marks != 0) return text + first_marked(marks);
  }
}

/// A place in the line. Each function takes what it names and moves past it, or returns false and
/// stays before what it could not take.
class reader {
 public:
  /// `scanned`: how many bytes of the next record's data an earlier call has searched for the
  /// closing quote.
  reader(char* text, const char* end, std::size_t scanned)
      : at_(text), end_(end), scanned_(scanned) {}

  [[nodiscard]] const char* at() const { return at_; }
  [[nodiscard]] std::size_t scanned() const { return scanned_; }
  [[nodiscard]] bool is_at_end() const { return at_ == end_; }

  template <std::size_t Size>
  bool take(const char (&text)[Size]) {
    static_assert(Size <= fast_batch_parser::look_ahead, "no more may be read after the line");
    constexpr std::size_t size = Size - 1;
    if constexpr (size <= sizeof(word)) {
      if (std::memcmp(at_, text, size) != 0) return false;
    } else {
      // Without a call; the last word may overlap the one before.
      word differences = load(at_ + size - sizeof(word)) ^ load(text + size - sizeof(word));
      for (std::size_t i = 0; i + sizeof(word) < size; i += sizeof(word)) {
        differences |= load(at_ + i) ^ load(text + i);
      }
      if (differences != 0) return false;
    }
    at_ += size;
    return true;
  }

  std::optional<kclxx::record> take_record();
  bool time(std::optional<std::chrono::milliseconds>& result);
  bool sequence_number(std::string_view& result);
  bool sub_sequence_number(std::uint64_t& result);

 private:
  bool data(std::optional<std::string_view>& result);
  bool partition_key(std::optional<std::string_view>& result);
  bool natural(std::int64_t& result);
  static bool decode(std::optional<std::string_view>& data);
  std::string_view up_to(const char* end);

  char* at_;
  const char* end_;
  std::size_t scanned_;
};

std::string_view reader::up_to(const char* end) {
  const std::string_view text(at_, static_cast<std::size_t>(end - at_));
  at_ += text.size();
  return text;
}

/// The result is still in base64.
inline bool reader::data(std::optional<std::string_view>& result) {
  if (take("null")) return true;
  if (!take("\"")) return false;
  // The line may be shorter than what arrived of it: a carriage return before its newline is cut.
  const auto size = static_cast<std::size_t>(end_ - at_);
  const std::size_t scanned = std::min(scanned_, size);
  const void* quote = std::memchr(at_ + scanned, '"', size - scanned);
  const char* end = quote == nullptr ? end_ : static_cast<const char*>(quote);
  scanned_ = static_cast<std::size_t>(end - at_);
  result = up_to(end);
  return take("\"");
}

inline bool reader::partition_key(std::optional<std::string_view>& result) {
  if (take("null")) return true;
  if (!take("\"")) return false;
  const plain_text key = take_plain_text(at_);
  result = up_to(key.end);
  return take("\"") && (key.is_ascii || is_utf8(*result));
}

inline bool reader::sequence_number(std::string_view& result) {
  if (!take("\"")) return false;
  result = up_to(end_of_digits(at_));
  return take("\"") && !result.empty() && result.size() <= sequence_position::capacity;
}

/// Takes an integer from 0 on, without a sign, a point or an exponent. A number of more than 18
/// digits is left to the decoder.
inline bool reader::natural(std::int64_t& result) {
  constexpr std::ptrdiff_t max_digits = 18;
  const char* begin = at_;
  const char* limit = begin + max_digits;
  std::int64_t value = 0;
  // A time has thirteen.
  if (const word text = load(at_); non_digits(text) == 0) {
    value = static_cast<std::int64_t>(value_of_digits(text - each('0')));
    at_ += sizeof(word);
  }
  for (; at_ < limit && *at_ >= '0' && *at_ <= '9'; ++at_) value = 10 * value + (*at_ - '0');
  result = value;
  return at_ > begin && (*begin != '0' || at_ == begin + 1);
}

inline bool reader::time(std::optional<std::chrono::milliseconds>& result) {
  if (take("null")) return true;
  std::int64_t number = 0;
  if (!natural(number) || number > most_milliseconds) return false;
  result = std::chrono::milliseconds(number);
  return true;
}

inline bool reader::sub_sequence_number(std::uint64_t& result) {
  if (take("null")) return true;
  std::int64_t number = 0;
  if (!natural(number)) return false;
  result = static_cast<std::uint64_t>(number);
  return true;
}

/// Takes a record if a further record or the end of the array follows it.
inline std::optional<record> reader::take_record() {
  // A record::fields would be cleared as a whole first, which takes time.
  std::optional<std::string_view> bytes;
  std::optional<std::string_view> key;
  std::string_view number;
  std::uint64_t sub_number = 0;
  std::optional<std::chrono::milliseconds> arrival;
  if (!take("{\"data\":") || !data(bytes)) return std::nullopt;
  if (!take(",\"partitionKey\":") || !partition_key(key)) return std::nullopt;
  if (!take(",\"sequenceNumber\":") || !sequence_number(number)) return std::nullopt;
  if (!take(",\"approximateArrivalTimestamp\":") || !time(arrival)) return std::nullopt;
  if (!take(",\"subSequenceNumber\":") || !sub_sequence_number(sub_number)) return std::nullopt;
  take(",\"action\":\"record\"");  // It carries no information.
  if (!take("}") || !(*at_ == ']' || (at_[0] == ',' && at_[1] == '{'))) return std::nullopt;
  scanned_ = 0;
  // Comes last, since it changes the line: a record that is not taken must stay as it was.
  if (!decode(bytes)) return std::nullopt;
  return record({bytes, key, number, sub_number, arrival});
}

/// Decodes base64 in place. If it is none, the line is as before.
bool reader::decode(std::optional<std::string_view>& data) {
  if (!data) return true;
  // The text belongs to the line, which is ours to write.
  char* text = const_cast<char*>(data->data());
  const base64_result decoded = decode_base64(text, data->size());
  if (decoded.error != nullptr) {
    restore_base64(text, decoded.groups);
    return false;
  }
  data = std::string_view(text, decoded.size);
  return true;
}

record rebased_record(const record& source, std::uintptr_t old_line, const char* new_line) {
  auto [data, partition_key, sequence_number, sub_sequence_number, arrival] = source.as_fields();
  if (data) data = rebased(*data, old_line, new_line);
  if (partition_key) partition_key = rebased(*partition_key, old_line, new_line);
  sequence_number = rebased(sequence_number, old_line, new_line);
  return record({data, partition_key, sequence_number, sub_sequence_number, arrival});
}

}  // namespace

// A line moves when its buffer grows. The buffer doubles, so that happens a few times in a line.
void fast_batch_parser::rebase(char* line, std::vector<record>& records) {
  const auto old_line = reinterpret_cast<std::uintptr_t>(std::exchange(line_, line));
  if (old_line == reinterpret_cast<std::uintptr_t>(line)) return;
  highest_.rebase(old_line, line);
  for (record& moved : records) moved = rebased_record(moved, old_line, line);
}

/// Whether records may come next.
bool fast_batch_parser::begin(char* line, std::size_t size, std::vector<record>& records) {
  if (state_ == state::before_records) {
    line_ = line;
    if (size <= prologue.size()) return false;
    parsed_bytes_ = prologue.size();
    state_ = state::unparsable;
    if (std::string_view(line, size).starts_with(prologue)) {
      state_ = line[parsed_bytes_] == ']' ? state::after_records : state::in_records;
    }
  } else {
    rebase(line, records);
  }
  return state_ == state::in_records;
}

void fast_batch_parser::take_records(std::size_t size, std::vector<record>& records) {
  reader from(line_ + parsed_bytes_, line_ + size, scanned_bytes_of_data_);
  do {
    const auto taken = from.take_record();
    if (!taken) {
      scanned_bytes_of_data_ = from.scanned();
      // Near the end of what has arrived the record may only be cut off. If it is not, it never
      // becomes parsable.
      const auto unread_bytes = static_cast<std::size_t>(line_ + size - from.at());
      if (unread_bytes > look_ahead) state_ = state::unparsable;
      return;
    }
    highest_.take(taken->sequence_number(), taken->sub_sequence_number());
    records.push_back(*taken);
    if (!from.take(",")) state_ = state::after_records;
    parsed_bytes_ = static_cast<std::size_t>(from.at() - line_);
  } while (state_ == state::in_records);
}

void fast_batch_parser::read_ahead(char* line, std::size_t size, std::vector<record>& records) {
  if (begin(line, size, records)) take_records(size, records);
}

fast_batch_parser::result fast_batch_parser::finish(char* line, std::size_t length,
                                                    std::vector<record>& records) {
  read_ahead(line, length, records);
  result batch;
  if (!records.empty()) batch.unparsed_offset = parsed_bytes_;
  if (state_ == state::after_records) {
    reader from(line + parsed_bytes_, line + length, 0);
    batch.is_whole = from.take("],\"millisBehindLatest\":") &&
                     from.time(batch.millis_behind_latest) && from.take("}") && from.is_at_end();
  }
  batch.highest = highest_;
  *this = {};
  return batch;
}

std::optional<checkpoint_answer> parse_success(char* line, std::size_t length) {
  reader from(line, line + length, 0);
  std::string_view number;
  std::uint64_t sub_number = 0;
  if (!from.take("{\"action\":\"checkpoint\",\"sequenceNumber\":") ||
      !from.sequence_number(number) || !from.take(",\"subSequenceNumber\":") ||
      !from.sub_sequence_number(sub_number) || !from.take(",\"error\":null}") ||
      !from.is_at_end()) {
    return std::nullopt;
  }
  return checkpoint_answer{{}, sequence_position(number, sub_number)};
}

}  // namespace kclxx::protocol
