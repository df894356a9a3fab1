// SPDX-License-Identifier: Apache-2.0
#include "archive.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>
#include <zlib.h>

namespace {

constexpr std::int64_t hour = 3'600'000;                   // in milliseconds
constexpr std::int64_t end_of_time = 253'402'300'800'000;  // the year 10000

std::string hour_of(std::int64_t at) {
  const auto seconds = static_cast<std::time_t>(at / hour * (hour / 1000));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H", &parts)};
}

std::string padded(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(12 - std::min<std::size_t>(12, digits.size()), '0') + digits;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string result(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int ended = ::deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (ended != Z_STREAM_END) throw std::logic_error("a batch is too large for zlib");
  return result;
}

/// The line of an event. In JSON text a line's end is white space between two values.
void append_line(std::string& lines, std::string_view json) {
  const std::size_t begin = lines.size();
  lines += json;
  std::replace_if(
      lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
  lines += '\n';
}

/// A part of a name that no other process, nor another attempt, has.
std::string unique() {
  std::random_device random;
  return padded(random()) + padded(random());
}

}  // namespace

void from_json(const nlohmann::json& value, event& result) {
  const auto& at = value.at("at");
  if (!at.is_number_integer()) throw std::invalid_argument("'at' is no number of milliseconds");
  if (at < 0 || at >= end_of_time) throw std::invalid_argument("'at' is not within 1970 to 9999");
  at.get_to(result.at);
}

shard_archive::shard_archive(std::shared_ptr<store> store, std::string shard)
    : store_(std::move(store)), shard_(std::move(shard)) {
  if (shard_.find('/') != std::string::npos)
    throw std::invalid_argument("a shard's name has a slash");
}

void shard_archive::add(kclxx::json_batch<event> events) {
  for (;;) {
    if (!is_loaded_) load();
    events = events.after(position_);
    if (events.empty()) return;
    contents by_hour;
    for (const auto& [event, record] : events)
      append_line(by_hour[hour_of(event.at)], record.data());
    // An error leaves open whether the commit was made.
    is_loaded_ = false;
    is_loaded_ = commit(by_hour, events.back().record.position());
  }
}

void shard_archive::load() {
  // Numbers have no gaps, so the newest is found in a few steps: first too far, then by halves.
  std::uint64_t there = newest_;
  std::uint64_t step = 1;
  std::optional<std::string> newest;
  for (bool is_growing = true; step > 0;) {
    auto found = store_->get(commit_name(there + step));
    if (found) {
      there += step;
      newest = std::move(found);
    } else {
      is_growing = false;
    }
    step = is_growing ? step * 2 : step / 2;
  }
  if (!newest && there > 0) newest = store_->get(commit_name(there));
  newest_ = there;
  if (newest) finish(*newest);
  // Of attempts that failed. Until the number is taken, a suspended worker can still commit them.
  for (const std::string& name : store_->list(staged_folder())) {
    const std::string file = name.substr(staged_folder().size() + 1);
    if (file <= padded(newest_) + "~") store_->remove(name);
  }
  is_loaded_ = true;
}

/// Gives the files of a commit their final names. Several workers may do so at the same time.
void shard_archive::finish(const std::string& commit) {
  const auto read = nlohmann::json::parse(commit);
  for (const auto& [staged, final_name] : read.at("files").items()) {
    store_->move(staged, final_name.get<std::string>());
  }
  position_ = kclxx::sequence_position::from_string(read.at("position").get<std::string>()).value();
}

/// False when another worker has made the commit of this number.
bool shard_archive::commit(const contents& by_hour, const kclxx::sequence_position& position) {
  const std::uint64_t number = newest_ + 1;
  const std::string attempt = staged_folder() + "/" + padded(number) + "." + unique();
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, lines] : by_hour) {
    const std::string staged = attempt + "." + name;
    store_->put(staged, gzip(lines));
    files[staged] = name + "/" + shard_ + "." + padded(number) + ".json.gz";
  }
  const std::string text =
      nlohmann::json{{"position", to_string(position)}, {"files", files}}.dump();
  if (!store_->put_if_absent(commit_name(number), text)) return false;
  newest_ = number;
  finish(text);
  return true;
}

std::string shard_archive::commit_name(std::uint64_t number) const {
  return "commits/" + shard_ + "/" + padded(number);
}

kclxx::processor_factory archive(std::shared_ptr<store> store, archive_limits limits,
                                 std::shared_ptr<kclxx::parking_lot> lot) {
  const auto archiver_of = [store = std::move(store)](const kclxx::shard_context& shard) {
    return [of_shard = shard_archive(store, shard.shard_id())](
               kclxx::json_batch<event> events) mutable { of_shard.add(events); };
  };
  kclxx::failure_policy policy{.bad_record = kclxx::bad_record::park, .lot = std::move(lot)};
  // A full disk is no event's fault.
  policy.is_outage = [](const std::exception& error) {
    return dynamic_cast<const std::system_error*>(&error) != nullptr;
  };
  return kclxx::batches(
      kclxx::json<event>(archiver_of), std::move(policy),
      {.max_records = limits.records, .max_bytes = limits.bytes, .linger = limits.time});
}
