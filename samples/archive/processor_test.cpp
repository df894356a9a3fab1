// SPDX-License-Identifier: Apache-2.0
// The archive under the test kit: a crash, a successor and an outage at each step of a commit.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>
#include <zlib.h>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <kclxx/archive/testing.hpp>
#include <kclxx/testing/worker.hpp>

#include "processor.hpp"

using played = kclxx::testing::worker;
using kclxx::archive::testing::memory_store;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

/// An event in the first hour of 1970.
std::string first(const std::string& name) {
  return R"({"tenant":"acme","at":1,"name":")" + name + "\"}";
}
/// An event in the second hour of 1970.
std::string second(const std::string& name) {
  return R"({"tenant":"acme","at":3600000,"name":")" + name + "\"}";
}

/// A worker that archives into this store. Its successors cut the records into smaller batches.
played worker_over(const std::shared_ptr<memory_store>& store) {
  kclxx::run_options options;
  options.checkpoint_interval = 0s;
  const auto make =
      [store, records = std::make_shared<std::size_t>(5)](const kclxx::shard_context& shard) {
        if (*records > 2) --*records;
        return make_processor(store, {.records = *records, .time = 10s})(shard);
      };
  return played(make, options);
}

std::string unpacked(const std::string& content) {
  std::string text(100'000, '\0');
  z_stream stream{};
  REQUIRE(::inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  CHECK(::inflate(&stream, Z_FINISH) == Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

/// The lines of a folder's files, in the order of their names.
lines events(const memory_store& store, const std::string& folder) {
  lines result;
  for (const auto& [name, content] : store.objects()) {
    if (!name.starts_with(folder + '/')) continue;
    std::string text = unpacked(content);
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos;) {
      result.push_back(text.substr(0, end));
      text.erase(0, end + 1);
    }
  }
  return result;
}

const std::string first_hour = "tenant=acme/date=1970-01-01/hour=00";
const std::string second_hour = "tenant=acme/date=1970-01-01/hour=01";

void require_all(const memory_store& store, const played& worker) {
  INFO(worker);
  CHECK(events(store, first_hour) == lines{first("a"), first("c"), first("e")});
  CHECK(events(store, second_hour) == lines{second("b"), second("d")});
  CHECK(store.list("_kclxx_parked").empty());
}

}  // namespace

TEST_CASE("each event is in a file of its tenant and hour, once it is committed") {
  const auto store = std::make_shared<memory_store>();
  played worker = worker_over(store);
  worker.initialize("shard-0").deliver({first("a"), second("b")}).deliver({first("c")});
  CHECK(events(*store, first_hour).empty());
  worker.advance(10s).deliver({});
  INFO(worker);
  CHECK(events(*store, first_hour) == lines{first("a"), first("c")});
  CHECK(events(*store, second_hour) == lines{second("b")});
  CHECK(worker.persisted() == kclxx::sequence_position("3"));
}

TEST_CASE("an event is one line, as it came, without a byte order mark") {
  const auto store = std::make_shared<memory_store>();
  played worker = worker_over(store);
  worker.initialize("shard-0");
  worker.deliver(
      {"\xEF\xBB\xBF{\"at\" :\r\n1, \"tenant\": \"a b\", \"n\": 12345678901234567890.10}"});
  worker.end_shard();
  INFO(worker);
  CHECK(events(*store, "tenant=a%20b/date=1970-01-01/hour=00") ==
        lines{"{\"at\" :  1, \"tenant\": \"a b\", \"n\": 12345678901234567890.10}"});
}

TEST_CASE(
    "a record that is no event, or can have no file, is parked, and the events are archived") {
  const auto store = std::make_shared<memory_store>();
  played worker = worker_over(store);
  const std::string long_tenant = R"({"at":1,"tenant":")" + std::string(300, 'x') + "\"}";
  worker.initialize("shard-0");
  worker.deliver({"{}", first("a"), R"({"tenant":"a","at":1.5})", R"({"tenant":"a","at":-1})"});
  worker.deliver({R"({"tenant":"a","at":253402300800000})", "no JSON", long_tenant});
  worker.deliver({R"({"tenant":"a","at":253402300799999})", R"({"tenant":"","at":1})"}).end_shard();
  INFO(worker);
  CHECK(store->list("_kclxx_parked").size() == 7);
  CHECK(events(*store, first_hour) == lines{first("a")});
  CHECK(events(*store, "tenant=a/date=9999-12-31/hour=23").size() == 1);
  CHECK(worker.persisted() == kclxx::sequence_position("SHARD_END"));
}

TEST_CASE("a worker that crashes at any step leaves nothing out, and nothing twice") {
  std::optional<played> worker;
  const int steps = kclxx::archive::testing::at_each_step(
      [&] { worker->crash(); },
      [&](const std::shared_ptr<memory_store>& store) {
        worker.emplace(worker_over(store));
        const auto survive = [&](auto action) {
          action();
          if (!worker->exit_status() && worker->stop_requested()) worker->resume();
        };
        worker->initialize("shard-0");
        survive([&] { worker->deliver({first("a"), second("b")}); });
        survive([&] { worker->deliver({first("c"), second("d")}); });
        survive([&] { worker->deliver({first("e")}); });
        survive([&] { worker->end_shard(); });
        if (!worker->exit_status()) worker->end_shard();
        require_all(*store, *worker);
      });
  CHECK(steps > 12);
}

TEST_CASE("each event is archived by one of two workers, whatever step they meet at") {
  std::optional<played> worker;
  std::optional<played> successor;
  const int steps = kclxx::archive::testing::at_each_step(
      [&] {
        successor.emplace(worker->start_successor());
        successor->advance(10s).deliver({});
      },
      [&](const std::shared_ptr<memory_store>& store) {
        successor.reset();
        worker.emplace(worker_over(store));
        worker->initialize("shard-0").deliver({first("a"), second("b")});
        worker->deliver({first("c"), second("d")}).deliver({first("e")}).advance(10s);
        if (successor) successor->deliver({}).end_shard();
        require_all(*store, *worker);
      });
  CHECK(steps > 6);
}

TEST_CASE("in an outage at any step the shard waits, and no event is parked") {
  std::optional<played> worker;
  const int steps = kclxx::archive::testing::at_each_step(
      [] { throw std::system_error(ENOSPC, std::generic_category(), "played"); },
      [&](const std::shared_ptr<memory_store>& store) {
        worker.emplace(worker_over(store));
        worker->initialize("shard-0").deliver({first("a"), second("b")});
        worker->deliver({first("c"), second("d")}).deliver({first("e")}).end_shard();
        CHECK(worker->exit_status() == kclxx::exit_status::ok);
        require_all(*store, *worker);
      });
  CHECK(steps > 12);
}
