// SPDX-License-Identifier: Apache-2.0
// What the recipe for CloudWatch Logs does.
#include <new>
#include <string>
#include <vector>
#include <zlib.h>

#include <kclxx/testing/worker.hpp>

#include "../../docs/code/recipes.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

std::string gzip(const std::string& text) {
  std::string packed(text.size() + 100, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

}  // namespace

TEST_CASE("what is packed with gzip is unpacked; what is damaged is a permanent error",
          "[documented]") {
  for (const std::string& text : {std::string(), std::string("a"), std::string(1'000'000, 'a')}) {
    const std::string packed = gzip(text);
    CHECK(recipes::gunzip(packed) == text);
    CHECK_THROWS_AS(recipes::gunzip(packed.substr(0, packed.size() / 2)), kclxx::permanent_error);
  }
  CHECK_THROWS_AS(recipes::gunzip(""), kclxx::permanent_error);
  CHECK_THROWS_AS(recipes::gunzip("no gzip file"), kclxx::permanent_error);
}

TEST_CASE(
    "messages of CloudWatch Logs are stored, its checks are not, and damaged records are parked",
    "[documented]") {
  std::vector<std::string> stored;
  const kclxx::test::temporary_folder folder;
  const auto store = [&](std::string_view message) { stored.emplace_back(message); };
  ::setenv("KCLXX_PARKING_DIR", folder.path().c_str(), 1);
  kclxx::testing::worker worker(recipes::log_messages(store));
  ::unsetenv("KCLXX_PARKING_DIR");
  worker.initialize().deliver(
      {gzip(R"({"messageType":"CONTROL_MESSAGE","logEvents":[{"message":"check"}]})"),
       gzip(R"({"messageType":"DATA_MESSAGE","logEvents":[{"message":"a"},{"message":"b"}]})"),
       gzip(R"({"messageType":"DATA_MESSAGE"})"), gzip("no JSON"), "no gzip file"});
  INFO(worker);
  CHECK(stored == std::vector<std::string>{"a", "b"});
  CHECK(worker.persisted() == kclxx::sequence_position("5"));
}
