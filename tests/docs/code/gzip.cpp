// SPDX-License-Identifier: Apache-2.0
// A recipe of docs/processing.md, for zlib.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "recipes.hpp"

namespace recipes {

// clang-format off
std::string gunzip(std::string_view data) {
  std::uint32_t size = 0;  // is at the end, with the lowest byte first
  if (data.size() >= sizeof size) std::memcpy(&size, data.data() + data.size() - sizeof size, sizeof size);
  std::string text(std::min(size, 64U << 20), '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  if (::inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  const int status = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  if (status != Z_STREAM_END) throw kclxx::permanent_error("no gzip file, or over 64 MiB");
  return text;
}

kclxx::processor_factory log_messages(function store) {
  const auto is_permanent = [](const std::exception& error) {
    return dynamic_cast<const nlohmann::json::exception*>(&error) != nullptr;
  };
  return kclxx::each([store](const kclxx::record& event) {
    const auto batch = nlohmann::json::parse(gunzip(event.data()));
    if (batch.at("messageType") != "DATA_MESSAGE") return;  // CloudWatch checks the stream
    for (const auto& entry : batch.at("logEvents")) {
      store(entry.at("message").get_ref<const std::string&>());
    }
  }, {.is_permanent = is_permanent, .bad_record = kclxx::bad_record::park});
}
// clang-format on

}  // namespace recipes
