// SPDX-License-Identifier: Apache-2.0
#include "host/lease_table/stream_position.hpp"

#include <algorithm>
#include <cmath>
#include <regex>

#include <boost/multiprecision/cpp_int.hpp>
#include <nlohmann/json.hpp>

#include "base/arrival_time.hpp"
#include "tool/foreign_json.hpp"

namespace kclxx::host::lease_table {

using namespace tool;
using namespace std::chrono_literals;

namespace {

using boost::multiprecision::cpp_int;
using nlohmann::json;

instant arrival_in(const json& record) {
  const json* const value = find_foreign(record, "ApproximateArrivalTimestamp");
  constexpr auto limit = 9'000'000'000s;  // in the year 2255: a clock of nanoseconds ends in 2262
  // The program aws prints seconds up to its version 1, and a date from 2 on.
  if (value != nullptr && value->is_number()) {
    const double seconds = value->get<double>();
    if (seconds >= 0 && seconds < static_cast<double>(limit.count()))
      return instant(std::llround(seconds * 1000));
  }
  if (value != nullptr && value->is_string()) {
    const auto time = parse_instant(value->get_ref<const std::string&>());
    if (time && *time < limit) return *time;
  }
  throw bad_stream_answer("a record has no ApproximateArrivalTimestamp");
}

template <class Parse>
auto parse_answer(std::string_view text, const Parse& parse) {
  try {
    const json document = parse_foreign(text);
    if (!document.is_object()) throw bad_stream_answer("it is no object");
    return parse(document);
  } catch (const foreign_json_error& error) {
    throw bad_stream_answer(error.what());
  }
}

const json& list_in(const json& document, const char* name) {
  const json* const list = find_foreign(document, name);
  if (list == nullptr || !list->is_array()) {
    throw bad_stream_answer(std::string("it has no list ") + name);
  }
  return *list;
}

/// The number of a text. Nothing: it is no sequence number as Kinesis writes them.
std::optional<cpp_int> number_in(std::string_view sequence_number) {
  constexpr std::size_t max_digits = 129;
  const bool is_number =
      !sequence_number.empty() && sequence_number.size() <= max_digits &&
      sequence_number.find_first_not_of("0123456789") == std::string_view::npos &&
      (sequence_number.front() != '0' || sequence_number.size() == 1);
  return is_number ? std::optional(cpp_int(std::string(sequence_number))) : std::nullopt;
}

/// What the records of a shard have in common: in the form that arrival_of() knows, the nine
/// hexadecimal digits after the first one are the time of the shard's creation, and the tenth is
/// the last digit of the shard's number.
cpp_int origin_of(const cpp_int& number) { return number >> 144; }

/// The records on both sides of a point in time.
struct surroundings {
  std::optional<stream_record> last_before;
  std::optional<stream_record> first_from;
};

surroundings look_around(const shard_reader& shard, std::string iterator, instant time,
                         int max_records) {
  surroundings result;
  while (!iterator.empty()) {
    record_page page = shard.read(iterator, max_records);
    for (stream_record& record : page.records) {
      if (record.arrival >= time) {
        result.first_from = std::move(record);
        return result;
      }
      result.last_before = std::move(record);
    }
    if (page.records.empty() && page.is_at_tip) return result;
    iterator = std::move(page.next_iterator);
  }
  return result;
}

}  // namespace

std::optional<instant> parse_instant(std::string_view text) {
  static const std::regex form(
      R"((\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(:(\d\d)(\.(\d+))?)?(Z|([-+])(\d\d):?(\d\d)))");
  constexpr std::size_t max_size = 100;  // std::regex recurses, and a longer text takes the stack
  std::match_results<std::string_view::const_iterator> parts;
  if (text.size() > max_size || !std::regex_match(text.begin(), text.end(), parts, form)) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t part) {
    return parts[part].matched ? std::stoi(parts[part].str()) : 0;
  };
  const std::chrono::year_month_day calendar{std::chrono::year(number(1)),
                                             std::chrono::month(static_cast<unsigned>(number(2))),
                                             std::chrono::day(static_cast<unsigned>(number(3)))};
  const auto has_time = [&](std::size_t hour) {
    return number(hour) < 24 && number(hour + 1) < 60;
  };
  if (!calendar.ok() || number(1) < 1970 || !has_time(4) || number(7) > 59 || !has_time(12)) {
    return std::nullopt;
  }
  const auto time_at = [&](std::size_t hour) {
    return std::chrono::hours(number(hour)) + std::chrono::minutes(number(hour + 1));
  };
  const instant fraction(std::stoi((parts[9].str() + "000").substr(0, 3)));
  return std::chrono::sys_days(calendar).time_since_epoch() + time_at(4) +
         std::chrono::seconds(number(7)) + fraction - (parts[11] == "-" ? -1 : 1) * time_at(12);
}

record_page parse_records(std::string_view text) {
  return parse_answer(text, [](const json& document) {
    record_page page;
    for (const json& record : list_in(document, "Records")) {
      if (!record.is_object()) throw bad_stream_answer("a record is no object");
      page.records.push_back({foreign_text(record, "SequenceNumber"), arrival_in(record)});
    }
    page.next_iterator = find_foreign_text(document, "NextShardIterator").value_or("");
    page.is_at_tip = find_foreign_number(document, "MillisBehindLatest").value_or(0) == 0;
    return page;
  });
}

std::string parse_iterator(std::string_view text) {
  return parse_answer(text,
                      [](const json& document) { return foreign_text(document, "ShardIterator"); });
}

std::vector<stream_shard> parse_shards(std::string_view text) {
  return parse_answer(text, [](const json& document) {
    std::vector<stream_shard> shards;
    for (const json& shard : list_in(document, "Shards")) {
      if (!shard.is_object()) throw bad_stream_answer("a shard is no object");
      const json none = json::object();
      const json* const found = find_foreign(shard, "SequenceNumberRange");
      const json& range = found == nullptr ? none : *found;
      shards.push_back({foreign_text(shard, "ShardId"),
                        find_foreign_text(range, "StartingSequenceNumber").value_or(""),
                        find_foreign_text(range, "EndingSequenceNumber").value_or("")});
    }
    return shards;
  });
}

bool can_be_in(const stream_shard& shard, std::string_view sequence_number) {
  const auto number = number_in(sequence_number);
  const auto first = number_in(shard.first_number);
  const auto last = number_in(shard.last_number);
  if (!number || !first) return true;
  if (*number < *first || (last && *number > *last)) return false;
  // An open shard has no last number. What an older shard of the same name has lies below the first
  // one, and what a newer one has begins with another time.
  return !detail::arrival_of(sequence_number) || !detail::arrival_of(shard.first_number) ||
         origin_of(*number) == origin_of(*first);
}

std::optional<bool> is_before(std::string_view first, std::string_view second) {
  const auto number = number_in(first);
  const auto limit = number_in(second);
  return number && limit ? std::optional(*number < *limit) : std::nullopt;
}

stream_position find_position(const shard_reader& shard, instant time) {
  // The oldest record bounds the search, and may end it.
  const surroundings oldest =
      look_around(shard, shard.iterator_at(std::nullopt), instant::min(), 1);
  if (!oldest.first_from) return {"TRIM_HORIZON", std::nullopt};
  const instant oldest_arrival = oldest.first_from->arrival;
  if (oldest_arrival >= time) return {"TRIM_HORIZON", oldest_arrival};
  for (instant step = 1s;; step *= 4) {
    const instant begin = std::max(time - step, oldest_arrival);
    const surroundings found = look_around(shard, shard.iterator_at(begin), time, 1000);
    const auto first_arrival =
        found.first_from ? std::optional(found.first_from->arrival) : std::nullopt;
    if (found.last_before) return {found.last_before->sequence_number, first_arrival};
    // The oldest record has been deleted meanwhile.
    if (begin == oldest_arrival) return {"TRIM_HORIZON", first_arrival};
  }
}

}  // namespace kclxx::host::lease_table
