// SPDX-License-Identifier: Apache-2.0
#include "processor.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>
#include <zlib.h>

#include <kclxx/archive/commit_log.hpp>
#include <kclxx/archive/parking_lot.hpp>
#include <kclxx/json.hpp>

namespace {

using kclxx::archive::commit_log;
using events = kclxx::json_batch<event>;

constexpr std::int64_t year_10000 = 253'402'300'800'000;  // in milliseconds

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

void append_line(std::string& lines, std::string_view json) {
  // JSON text may begin with a byte order mark, but only a file's first line may have it.
  if (json.starts_with("\xEF\xBB\xBF")) json.remove_prefix(3);
  // A newline in JSON text stands between two values, where a blank means the same.
  for (const char c : json) lines += c == '\n' || c == '\r' ? ' ' : c;
  lines += '\n';
}

std::vector<kclxx::archive::file> files_of(const events& batch) {
  std::map<std::string, std::string> lines_by_folder;
  for (const auto& [event, record] : batch) {
    append_line(lines_by_folder[event.folder], record.data());
  }
  std::vector<kclxx::archive::file> files;
  for (const auto& [folder, lines] : lines_by_folder) {
    files.push_back({folder, ".json.gz", gzip(lines)});
  }
  return files;
}

}  // namespace

void from_json(const nlohmann::json& value, event& result) {
  const auto& tenant = value.at("tenant").get_ref<const std::string&>();
  const auto& at = value.at("at");
  if (tenant.empty()) throw std::invalid_argument("'tenant' is empty");
  if (!at.is_number_integer()) throw std::invalid_argument("'at' is no number of milliseconds");
  if (at < 0 || at >= year_10000) throw std::invalid_argument("'at' is not within 1970 to 9999");
  const auto seconds = static_cast<std::time_t>(at.get<std::int64_t>() / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char hour[32];
  const std::size_t size = std::strftime(hour, sizeof hour, "/date=%Y-%m-%d/hour=%H", &parts);
  result.folder = kclxx::archive::partition("tenant", tenant) + std::string(hour, size);
}

kclxx::processor_factory make_processor(std::shared_ptr<kclxx::archive::store> store,
                                        commit_limits limits) {
  kclxx::failure_policy policy{.bad_record = kclxx::bad_record::park};
  policy.is_outage = kclxx::archive::is_outage;
  policy.lot = std::make_shared<kclxx::archive::parking_lot>(store);
  const auto handler_of = [store = std::move(store)](const kclxx::shard_context& shard) {
    return [log = commit_log(store, shard)](const events& batch) mutable {
      log.commit(batch, files_of);
    };
  };
  return kclxx::batches(
      kclxx::json<event>(handler_of), std::move(policy),
      {.max_records = limits.records, .max_bytes = limits.bytes, .linger = limits.time});
}
