// SPDX-License-Identifier: Apache-2.0
// The test kit's functions, and what it reports afterwards.
#include <chrono>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/run_options.hpp"

using namespace kclxx;
using namespace kclxx::test;
using names = std::vector<std::string>;
using namespace std::chrono_literals;

TEST_CASE("records are delivered with every field as it is given", "[testing]") {
  auto worker = scripted();
  worker.initialize("shard-0", sequence_position("99", 7));
  worker.deliver_records(
      {{.data = std::string("\0\xff", 2),
        .partition_key = "k\"\n",
        .sequence_number = "00000000000000000000000000000000000000000000000000000199",
        .sub_sequence_number = 3,
        .approximate_arrival_timestamp = 1700000000123ms},
       {.data = ""},
       {.sequence_number = "300"}},
      1500ms);
  const auto& seen = worker.processor<recording_processor>();
  CHECK(seen.start == sequence_position("99", 7));
  CHECK(seen.records ==
        names{std::string("00000000000000000000000000000000000000000000000000000199/3 k\"\n: ") +
                  std::string("\0\xff", 2),
              "00000000000000000000000000000000000000000000000000000200/0 -: ", "300/0 -: null"});
  CHECK(seen.arrivals == std::vector<long long>{1700000000123, -1, -1});
  CHECK(seen.behind == 1500ms);
  worker.deliver({"d"}, std::nullopt);
  CHECK(seen.records.back() == "301/0 key: d");
  CHECK(seen.behind == std::nullopt);
}

TEST_CASE("sequence numbers continue from the highest, carrying over nines", "[testing]") {
  auto worker = scripted();
  worker.initialize().deliver_records({{.data = "a", .sequence_number = "18446744073709551999"}});
  worker.deliver({"b"}).deliver_records({{.data = "c", .sequence_number = "99999999999999999999"}});
  worker.deliver({"d"});
  CHECK(worker.processor<recording_processor>().records ==
        names{"18446744073709551999/0 -: a", "18446744073709552000/0 key: b",
              "99999999999999999999/0 -: c", "100000000000000000000/0 key: d"});
}

TEST_CASE("an aggregated record's user records share its sequence number", "[testing]") {
  auto worker = scripted({}, manual());
  worker.initialize().deliver({"a"}).deliver_aggregate({"b", "c", "d"}).deliver({"e"});
  auto& processor = worker.processor<recording_processor>();
  CHECK(processor.records ==
        names{"1/0 key: a", "2/0 key: b", "2/1 key: c", "2/2 key: d", "3/0 key: e"});
  processor.handle->async_checkpoint(sequence_position("2", 1));
  worker.deliver({});
  CHECK(worker.persisted() == sequence_position("2", 1));
  worker.crash().resume();
  CHECK(worker.processor<recording_processor>().records == names{"2/2 key: d", "3/0 key: e"});
}

TEST_CASE("bad records are refused with the field, and none is delivered", "[testing]") {
  auto worker = scripted();
  worker.initialize();
  CHECK_THROWS_WITH(
      worker.deliver_records({{.data = "a"}, {.sequence_number = "LATEST"}}),
      "deliver_records: the sequence_number 'LATEST' is not a number of 1 to 129 digits");
  CHECK_THROWS_AS(
      worker.deliver_records({{.sequence_number = "1", .sub_sequence_number = 1ULL << 63}}),
      std::invalid_argument);
  CHECK_THROWS_AS(worker.deliver_records({{.sub_sequence_number = 1}}), std::invalid_argument);
  worker.deliver({"b"});
  CHECK(worker.processor<recording_processor>().records == names{"1/0 key: b"});
}

TEST_CASE("a delivery comes again, with new records after it or without", "[testing][P69]") {
  auto worker = scripted({}, prompt());
  worker.initialize().deliver({"a", "b"}).deliver_aggregate({"c", "d"});
  worker.deliver_records({{.sequence_number = "3", .sub_sequence_number = 0},
                          {.sequence_number = "3", .sub_sequence_number = 1},
                          {.data = "e", .partition_key = "k"}});
  worker.deliver_records({{.sequence_number = "1"}});
  CHECK(worker.processor<recording_processor>().records ==
        names{"1/0 key: a", "2/0 key: b", "3/0 key: c", "3/1 key: d", "3/0 key: c", "3/1 key: d",
              "4/0 k: e", "1/0 key: a"});
  CHECK(worker.persisted() == sequence_position("4"));
  worker.deliver({"f"}).crash().resume();
  CHECK(worker.processor<recording_processor>().records.empty());  // nothing was missed
  CHECK(worker.persisted() == sequence_position("5"));
}

TEST_CASE("records that a shard cannot have are refused", "[testing][P69]") {
  auto worker = scripted();
  worker.initialize().deliver_records(
      {{.data = "a", .sequence_number = "10"}, {.data = "b", .sequence_number = "20"}});
  const auto why = [&](const std::vector<record::fields>& records) {
    try {
      worker.deliver_records(records);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(why({{.sequence_number = "20"}, {.sequence_number = "10"}}),
             Contains("10/0 is not after 20/0: a shard's records come in order"));
  CHECK_THAT(why({{.sequence_number = "10"}, {.sequence_number = "10"}}), Contains("is not after"));
  CHECK_THAT(why({{.data = "new", .sequence_number = "15"}}),
             Contains("15/0 is not after 20/0, and was not delivered before"));
  CHECK_THAT(why({{.data = "other", .sequence_number = "10"}}),
             Contains("10/0 was delivered with other fields"));
  CHECK(why({{.data = "a", .sequence_number = "10"}}).empty());
}

TEST_CASE("a daemon leaves when its shutdown_grace is over", "[testing]") {
  SECTION("while the child retries a record, as in an outage") {
    testing::worker worker(parallel([](const record&) { throw std::runtime_error("away"); }, {},
                                    {.drain_timeout = 1h}),
                           prompt(), {.shutdown_grace = 15s});
    const auto begin = worker.initialize().deliver({"a"}).now();
    worker.request_shutdown();
    CHECK(worker.now() - begin == 15s);
    CHECK(worker.exit_status() == exit_status::daemon_gone);
    CHECK(worker.persisted() == sequence_position("TRIM_HORIZON"));
  }
  SECTION("between two actions") {
    auto worker = scripted({}, {}, {.shutdown_grace = 15s});
    worker.initialize().deliver({"a"}).request_shutdown().advance(14s);
    CHECK(worker.is_running());
    worker.advance(1s);
    CHECK(worker.exit_status() == exit_status::ok);
  }
}

TEST_CASE("what a daemon could not do now is refused", "[testing]") {
  auto worker = scripted();
  CHECK_THROWS_WITH(worker.deliver({"a"}), "deliver: initialize comes first");
  CHECK_THROWS_WITH(worker.resume(), "resume: initialize comes first");
  CHECK_THROWS_AS(worker.processor(), std::logic_error);
  worker.initialize();
  CHECK_THROWS_WITH(worker.initialize(), "initialize: the shard is initialized already");
  CHECK_THROWS_WITH(worker.resume(), "resume: the child still runs; crash() it, or end_input()");
  CHECK_THROWS_AS(worker.advance(-1ms), std::invalid_argument);
  CHECK_THROWS_AS(worker.fail_next_checkpoint("ThrottlingException", 0), std::invalid_argument);
  worker.request_shutdown();
  CHECK_THROWS_WITH(worker.deliver({"a"}),
                    "deliver: after shutdownRequested a daemon sends an ending or closes the "
                    "input, nothing else");
  worker.crash();
  CHECK_THROWS_WITH(worker.deliver({"a"}),
                    "deliver: the child crashed; resume() starts a successor");
  CHECK_THROWS_AS(worker.initialize(), std::logic_error);
  CHECK_THROWS_AS(worker.crash(), std::logic_error);
  CHECK_THROWS_AS(worker.end_input(), std::logic_error);
  worker.resume().end_shard();
  CHECK_THROWS_WITH(worker.end_input(), "end_input: the child has left with exit status 0");
  CHECK_THROWS_WITH(worker.resume(), "resume: the shard is finished, nobody reads it again");
}

TEST_CASE("a successor gets what was not persisted, in a new processor", "[testing]") {
  auto worker = scripted();
  worker.initialize("shard-7").deliver({"a"});
  worker.fail_next_checkpoint("ThrottlingException").advance(6s).deliver({"b", "c"});
  CHECK(worker.persisted() == sequence_position("1"));
  worker.crash();
  CHECK_FALSE(worker.exit_status().has_value());
  CHECK(worker.stop_requested());
  worker.resume();
  CHECK_FALSE(worker.stop_requested());
  auto& successor = worker.processor<recording_processor>();
  CHECK(successor.shard_id == "shard-7");
  CHECK(successor.start == sequence_position("1"));
  CHECK(successor.records == names{"2/0 key: b", "3/0 key: c"});
  worker.deliver({"d"}).request_shutdown().end_input();
  CHECK(successor.records.back() == "4/0 key: d");
  CHECK(worker.persisted() == sequence_position("4"));
  worker.resume();  // after an orderly end, with nothing to deliver again
  CHECK(worker.callbacks().back() == "initialize");
}

TEST_CASE("the context has the names and the virtual clock", "[testing]") {
  auto worker = scripted({}, {}, {.stream_name = "s", .application_name = "a", .worker_id = "w"});
  worker.initialize();
  const auto& context = *worker.processor<recording_processor>().context;
  CHECK(context.stream_name() == "s");
  CHECK(context.application_name() == "a");
  CHECK(context.worker_id() == "w");
  const auto before = context.now();
  CHECK(worker.now() == before);
  worker.advance(90min);
  CHECK(context.now() - before == 90min);
  CHECK(worker.deliver({"a"}).processor<recording_processor>().arrivals ==
        std::vector<long long>{1'600'000'000'000 + 90 * 60'000});
}

TEST_CASE("a fault that no checkpoint has met is the last line of the printed dialogue",
          "[testing]") {
  const auto printed = [](const testing::worker& worker) {
    std::ostringstream text;
    text << worker;
    return text.str();
  };
  auto worker = scripted();
  worker.initialize().fail_next_checkpoint("ThrottlingException", 2);
  CHECK(printed(worker) == worker.dialogue() +
                               "           faults that no checkpoint has met: 2, the next is "
                               "ThrottlingException\n");
  worker.deliver({"a"}).request_shutdown();
  CHECK(worker.attempts().size() == 3);
  CHECK(printed(worker) == worker.dialogue());
}

TEST_CASE("a processor of another type is refused with both types", "[testing]") {
  struct other final : record_processor {
    void process_records(record_batch, const checkpointer&) override {}
  };
  auto worker = scripted();
  worker.initialize();
  CHECK_THROWS_WITH(worker.processor<other>(),
                    test::Contains("made a kclxx::test::recording_processor, not a ") &&
                        test::Contains("::other"));
}
