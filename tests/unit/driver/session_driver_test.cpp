// SPDX-License-Identifier: Apache-2.0
// What is between the session and where it runs: options, handlers, user code, lines.
#include "driver/session_driver.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/run_options.hpp"
#include "support/text.hpp"

using namespace kclxx;
using session::timer;
using std::chrono::hours;
using std::chrono::milliseconds;
using test::manual;
using lines = std::vector<std::string>;
using shard_events = std::vector<observer::shard_event>;

namespace {

const session::time_point start_time{hours(1)};

/// Hosts a driver, and plays the daemon.
class driven_host : private driver::host {
 public:
  explicit driven_host(
      const test::session_options& options = {},
      processor_factory factory = [](const record_batch&) {})
      : driver(test::in_mode(std::move(factory), options.mode), options, 1, *this) {}
  /// From now on, what happens is kept in `events`.
  void observe_events() { is_observed_ = true; }

  void receive(std::string_view line) {
    auto memory = std::make_shared<driver::batch_memory>();
    memory->line.grow(line.size());
    line.copy(memory->line.data(), line.size());
    auto decoded = decoder_.decode(std::move(memory), line.size());
    feed([&] { driver.on_line(std::move(decoded)); });
  }
  void receive_and_run(std::string_view line) {
    receive(line);
    run_call();
  }
  void initialize() {
    receive_and_run(R"({"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON"})");
  }
  void records(const lines& numbers) {
    std::string line = R"({"action":"processRecords","records":[)";
    for (const std::string& number : numbers) {
      line +=
          (line.back() == '[' ? "" : ",") + (R"({"data":"","sequenceNumber":")" + number) + "\"}";
    }
    receive(line + "]}");
  }
  /// A batch, with its callback.
  void process(const lines& numbers) {
    records(numbers);
    run_call();
  }
  void answer(const std::string& number, const std::string& error = "null") {
    receive(R"({"action":"checkpoint","sequenceNumber":")" + number +
            R"(","subSequenceNumber":0,"error":)" + error + "}");
  }
  /// Runs the callback that was handed over.
  driver::session_driver::callback_result run_call() {
    REQUIRE(call_);
    auto result = driver.run_callback(*std::exchange(call_, std::nullopt), {}, nullptr);
    feed([&] { driver.on_callback_done(result); });
    return result;
  }
  void async_checkpoint(const std::string& number, checkpoint_handler handler) {
    feed([&] { driver.on_async_checkpoint(sequence_position(number), std::move(handler), true); });
  }
  void lasts() {
    feed([&] { driver.on_callback_lasts(); });
  }
  void timer_throws(const std::exception_ptr& what) {
    feed([&] { driver.on_user_code_threw(driver::describe("a timer", what)); });
  }
  void end_input(int error = 0) {
    feed([&] { driver.on_end_of_input(false, error); });
  }
  /// The last line was received.
  void ends(driver::line_decoder::end how = {false, 0}) {
    feed([&] { driver.on_line(how); });
  }
  /// As a host does, outside the event.
  void run_handlers() {
    while (!handlers.empty()) {
      auto [handler, result] = std::move(handlers.front());
      handlers.pop_front();
      handler(result);
    }
  }
  template <class Event>
  void feed(Event event) {
    is_in_event = true;
    event();
    is_in_event = false;
  }
  [[nodiscard]] bool logged(std::string_view text) const {
    return std::any_of(log_lines.begin(), log_lines.end(),
                       [&](const std::string& line) { return test::contains(line, text); });
  }
  lines take_written() { return std::exchange(written, {}); }
  shard_events take_events() { return std::exchange(events, {}); }
  void pass(milliseconds time) { now_ += time; }

  driver::session_driver driver;
  lines written;
  lines log_lines;
  lines lease_lines;
  shard_events events;
  std::vector<std::pair<session::waiter_id, std::error_code>> woken;
  std::deque<std::pair<checkpoint_handler, std::error_code>> handlers;
  std::array<std::optional<time_point>, session::timer_count> timers;
  bool is_output_broken = false;
  bool is_in_event = false;

 private:
  [[nodiscard]] time_point now() const override { return now_; }
  std::error_code write(std::string_view text) override {
    CHECK_FALSE(has_left_);
    if (is_output_broken) return std::make_error_code(std::errc::broken_pipe);
    written.emplace_back(text);
    return {};
  }
  void arm(timer which, milliseconds after) override {
    timers.at(static_cast<std::size_t>(which)) = now_ + after;
  }
  void call(session::call what) override { call_ = std::move(what); }
  void end_timers() override {}
  void wake(session::waiter_id waiter, std::error_code result) override {
    woken.emplace_back(waiter, result);
  }
  void observe(observer::shard_event event) noexcept override {
    events.push_back(std::move(event));
  }
  [[nodiscard]] bool is_observed() const noexcept override { return is_observed_; }
  void left(exit_status) override { CHECK_FALSE(std::exchange(has_left_, true)); }
  void write_log(log_level, std::string text, const std::optional<sequence_position>&) override {
    log_lines.push_back(std::move(text));
  }
  void log_lease(std::string text) override { lease_lines.push_back(std::move(text)); }
  void request_stop() override {}
  void run_handler(checkpoint_handler handler, std::error_code result) override {
    handlers.emplace_back(std::move(handler), result);
  }

  driver::line_decoder decoder_;
  time_point now_ = start_time;
  std::optional<session::call> call_;
  bool has_left_ = false;
  bool is_observed_ = false;
};

std::string checkpoint_line(const std::string& number) {
  return "\n{\"action\":\"checkpoint\",\"sequenceNumber\":\"" + number +
         "\",\"subSequenceNumber\":0}\n";
}
std::string status_line(const std::string& action) {
  return "\n{\"action\":\"status\",\"responseFor\":\"" + action + "\"}\n";
}

}  // namespace

TEST_CASE("the lines of one event are one write", "[driver][P39]") {
  driven_host child;
  child.initialize();
  CHECK(child.take_written() == lines{status_line("initialize")});
  child.process({"100"});
  CHECK(child.take_written() == lines{checkpoint_line("100") + status_line("processRecords")});
}

TEST_CASE("a duration below zero counts as zero, and the longest one as ten years", "[driver]") {
  const auto [given, used] = GENERATE(table<milliseconds, milliseconds>(
      {{milliseconds::min(), milliseconds(0)}, {milliseconds::max(), hours(24 * 365 * 10)}}));
  const driven_host child(run_options{.checkpoint_interval = given,
                                      .retry = {given, given},
                                      .shutdown_retry_limit = given,
                                      .retention = given,
                                      .grace_time = given});
  const run_options& options = child.driver.options();
  for (const auto duration :
       {options.checkpoint_interval, options.retry.initial_backoff, options.retry.max_backoff,
        options.shutdown_retry_limit, options.grace_time, options.retention.value()}) {
    CHECK(duration == used);
  }
}

TEST_CASE("a handler is called once with its outcome, and never inside an event", "[driver]") {
  driven_host child(manual());
  child.initialize();
  child.records({"100", "200"});
  lines outcomes;
  const auto keep = [&](std::error_code result) {
    CHECK_FALSE(child.is_in_event);
    outcomes.push_back(result ? result.message() : "persisted");
  };
  child.async_checkpoint("100", keep);
  child.run_call();
  SECTION("when it is persisted") {
    child.answer("100");
    CHECK(outcomes.empty());
    child.run_handlers();
    CHECK(outcomes == lines{"persisted"});
    child.async_checkpoint("100", keep);  // already persisted: outside this call all the same
    CHECK(outcomes.size() == 1);
    child.run_handlers();
    CHECK(outcomes == lines{"persisted", "persisted"});
  }
  SECTION("when the session ends first") {
    child.end_input();
    CHECK(outcomes.empty());
    child.run_handlers();
    CHECK(outcomes == lines{make_error_code(errc::daemon_gone).message()});
    child.async_checkpoint("200", keep);
    child.run_handlers();
    CHECK(outcomes.size() == 2);
  }
  SECTION("when the position is refused") {
    child.async_checkpoint("300", keep);
    child.run_handlers();
    CHECK(outcomes == lines{make_error_code(errc::position_out_of_range).message()});
  }
}

TEST_CASE("a handler is destroyed after its call", "[driver]") {
  driven_host child(manual());
  child.initialize();
  child.records({"100"});
  const auto owned = std::make_shared<int>(1);
  child.async_checkpoint("100", [owned](std::error_code) {});
  CHECK(owned.use_count() == 2);
  child.run_call();
  child.answer("100");
  child.run_handlers();
  CHECK(owned.use_count() == 1);
}

TEST_CASE("what catch has of pthread_exit is not rethrown", "[driver][P53]") {
  driven_host child;
  child.initialize();
  child.timer_throws(nullptr);
  CHECK(child.logged("a timer failed: an exception that is not a std::exception"));
}

TEST_CASE("a factory that makes no processor is logged and ends the session", "[driver][P53]") {
  driven_host child({}, [] { return std::unique_ptr<record_processor>(); });
  child.initialize();
  CHECK(child.log_lines == lines{"initialize failed: the processor factory returned no processor"});
  CHECK(child.driver.status() == exit_status::callback_failed);
}

TEST_CASE("in automatic mode a batch that is kept after its callback is warned of once",
          "[driver]") {
  std::vector<record_batch> kept;
  const auto keep = [&](const record_batch& batch) { kept.push_back(batch); };
  const std::string warning = "a copy of its record_batch is still in use";
  SECTION("automatic") {
    driven_host child({}, keep);
    child.initialize();
    child.process({"100"});
    CHECK(child.logged(warning));
    CHECK(child.logged("use checkpoint_mode::manual"));
    child.answer("100");
    child.log_lines.clear();
    child.process({"200"});
    CHECK(child.log_lines.empty());
  }
  SECTION("not in manual mode, which is for that") {
    driven_host child(manual(), keep);
    child.initialize();
    child.process({"100"});
    CHECK(child.log_lines.empty());
  }
  SECTION("nor for one that is not kept") {
    driven_host child;
    child.initialize();
    child.process({"100"});
    CHECK(child.log_lines.empty());
  }
}

TEST_CASE("lines without a message are logged once and skipped", "[driver][P60]") {
  driven_host child;
  child.receive(" ");
  CHECK(child.logged("the daemon sent a line without a message; such lines are skipped"));
  child.receive("");
  CHECK(child.log_lines.size() == 1);
  child.initialize();
  CHECK(child.take_written() == lines{status_line("initialize")});
}

TEST_CASE("what the library makes up for in a line is logged once in a session",
          "[driver][P8][P15]") {
  driven_host child;
  child.initialize();
  const auto [key, time, warning] = GENERATE(table<std::string, std::string, std::string>({
      {"\xff", "1", "bytes that are not UTF-8"},
      {"k", "1e300",
       "records[0].approximateArrivalTimestamp is 1e300, which is no time in milliseconds up to "
       "the "
       "year 2262; such times are delivered as unknown. Logged once."},
  }));
  const auto receive = [&, &key = key, &time = time](const char* number) {
    child.receive_and_run(R"({"action":"processRecords","records":[{"partitionKey":")" + key +
                          R"(","approximateArrivalTimestamp":)" + time + R"(,"sequenceNumber":")" +
                          number + R"("}]})");
  };
  receive("100");
  child.answer("100");
  CHECK(child.logged(warning));
  receive("200");
  CHECK(child.log_lines.size() == 1);
  CHECK_FALSE(child.driver.status());
}

TEST_CASE("an output that is broken ends the session with what the system reported",
          "[driver][P57]") {
  driven_host child;
  child.initialize();
  child.records({"100"});
  child.is_output_broken = true;
  child.run_call();
  CHECK(child.logged("cannot write to the daemon: Broken pipe"));
  CHECK(child.driver.status() == exit_status::daemon_gone);
}

TEST_CASE("a line that comes too early waits for its turn", "[driver][P58]") {
  driven_host child;
  child.initialize();
  child.take_written();
  child.records({"100"});
  CHECK_FALSE(child.driver.has_early_line());
  child.records({"200"});
  CHECK(child.driver.has_early_line());
  child.run_call();
  CHECK(child.take_written() == lines{checkpoint_line("100") + status_line("processRecords")});
  CHECK_FALSE(child.driver.has_early_line());  // it is called with
  CHECK(child.logged("the daemon did not answer the checkpoint at 100/0"));
  SECTION("and then so does the end") {
    child.ends();
    child.run_call();
    CHECK(child.take_written() == lines{status_line("processRecords")});
    CHECK(child.driver.status() == exit_status::ok);
  }
  SECTION("and then a callback has the grace time, as behind a line that the host cannot read") {
    const bool is_read = GENERATE(true, false);
    if (is_read) {
      child.ends();
    } else {
      child.feed([&] { child.driver.on_end_behind_line(); });
    }
    child.feed([&] { child.driver.on_timer(session::timer::ended); });
    CHECK(child.logged("a callback did not return within the grace time"));
    CHECK(child.driver.status() == exit_status::callback_stuck);
  }
  SECTION("but not the end in a line, or one with an error") {
    const auto end =
        GENERATE(driver::line_decoder::end{true, 0}, driver::line_decoder::end{false, EIO});
    child.ends(end);
    child.run_call();
    CHECK(child.driver.status() == exit_status::daemon_gone);
  }
  SECTION("but not the end that the host has found") {
    child.end_input();
    child.run_call();
    CHECK(child.driver.status() == exit_status::daemon_gone);
  }
  SECTION("but not a line that is blank, or bad") {
    child.receive(" ");
    CHECK(child.logged("the daemon sent a line without a message"));
    child.receive("[]");
    child.run_call();
    CHECK(child.driver.status() == exit_status::protocol_error);
  }
}

TEST_CASE("an answer that was not asked for is skipped, and logged once", "[driver][P58]") {
  driven_host child;
  child.initialize();
  child.answer("7");
  child.answer("8");
  CHECK(child.logged("the daemon answered a checkpoint that was not asked for"));
  CHECK(child.log_lines.size() == 1);
  child.process({"100"});
  CHECK(child.take_written().back() == checkpoint_line("100") + status_line("processRecords"));
}

TEST_CASE("where an answer is awaited and another action comes, or the end, the checkpoint fails",
          "[driver][P55][P58]") {
  driven_host child(manual());
  child.initialize();
  child.records({"100"});
  SECTION("that of a call, and the action follows the status") {
    child.feed([&] { child.driver.on_checkpoint(1, std::nullopt, true); });
    child.records({"200"});
    child.feed([&] { child.driver.on_checkpoint(2, std::nullopt, true); });
    CHECK(child.woken == std::vector<std::pair<session::waiter_id, std::error_code>>{
                             {1, errc::not_answered}, {2, errc::not_answered}});
    child.run_call();
    child.run_call();
    CHECK_FALSE(child.driver.status());
  }
  SECTION("that of the end of the shard") {
    child.records({"200"});
    child.feed([&] { child.driver.on_async_checkpoint(std::nullopt, {}, true); });
    child.run_call();
    child.feed([&] { child.driver.on_async_checkpoint(std::nullopt, {}, true); });
    child.run_call();
    child.receive_and_run(R"({"action":"shardEnded"})");
    child.ends();
    CHECK(child.driver.status() == exit_status::shard_end_failed);
  }
  SECTION("the records that the end of the shard waits for do not come any more") {
    child.records({"200"});
    child.run_call();
    child.run_call();
    child.receive_and_run(R"({"action":"shardEnded"})");
    child.ends();
    CHECK(child.driver.status() == exit_status::daemon_gone);
  }
}

TEST_CASE("warnings that were left out are counted in the log when the session ends",
          "[driver][log]") {
  driven_host child;
  child.initialize();
  for (int i = 0; i < 15; ++i) child.receive(R"({"action":"tune)" + std::to_string(i) + "\"}");
  CHECK(child.log_lines.size() == 10);
  child.end_input();
  REQUIRE(child.log_lines.size() == 11);
  CHECK(child.logged("tune14 (4 more like this were left out)"));
}

TEST_CASE("a line tells when the lease begins, and one when and why it ends", "[driver][log]") {
  driven_host child;
  const std::string start = GENERATE("TRIM_HORIZON", "90");
  child.receive_and_run(R"({"action":"initialize","shardId":"s","sequenceNumber":")" + start +
                        "\"}");
  const std::string begun =
      "lease gained: reading begins " + (start == "90" ? "after 90/0" : "from " + start);
  CHECK(child.lease_lines == lines{begun});
  child.process({"100"});
  std::string stored = start == "90" ? "90/0" : "none";
  const bool is_persisted = GENERATE(true, false);
  if (is_persisted) {
    child.answer("100");
    stored = "100/0";
  }
  const auto ended = [&](const std::string& reason) {
    return lines{begun, "lease ended: " + reason + "; stored position: " + stored};
  };
  SECTION("another worker has it") {
    child.receive_and_run(R"({"action":"leaseLost"})");
    CHECK(child.lease_lines == ended("another worker has it"));
    child.end_input();
    CHECK(child.lease_lines.size() == 2);
  }
  SECTION("the shard is finished") {
    child.receive_and_run(R"({"action":"shardEnded"})");
    child.receive(R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})");
    stored = "SHARD_END";
    CHECK(child.lease_lines == ended("the shard is finished"));
  }
  SECTION("the daemon stops") {
    child.end_input();
    CHECK(child.lease_lines == ended("the daemon has closed the dialogue"));
  }
  SECTION("the child fails") {
    child.receive("no message");
    CHECK(child.lease_lines == ended("this child ends with status 11"));
  }
}

TEST_CASE("observers get what happens in the dialogue, in order", "[driver][observer]") {
  const sequence_position first("100");
  const sequence_position end("SHARD_END");
  const auto took_none = std::chrono::nanoseconds(0);
  driven_host child;
  child.observe_events();
  child.initialize();
  CHECK(child.take_events() ==
        shard_events{observer::lease_gained{sequence_position("TRIM_HORIZON")},
                     observer::callback_ended{observer::callback_kind::initialize, took_none}});
  SECTION("of a batch and its checkpoint") {
    child.receive(
        R"({"action":"processRecords","millisBehindLatest":5,"records":[)"
        R"({"data":"AAAA","sequenceNumber":"90"},{"data":"AA==","sequenceNumber":"100"}]})");
    CHECK(child.take_events() ==
          shard_events{observer::batch_delivered{.records = 2,
                                                 .bytes = 4,
                                                 .first = sequence_position("90"),
                                                 .last = first,
                                                 .millis_behind_latest = milliseconds(5)}});
    child.run_call();
    CHECK(
        child.take_events() ==
        shard_events{observer::callback_ended{observer::callback_kind::process_records, took_none},
                     observer::checkpoint_requested{first}});
    child.pass(milliseconds(7));
    SECTION("that is persisted") {
      child.answer("100");
      CHECK(child.take_events() ==
            shard_events{observer::checkpoint_answered{first, milliseconds(7)}});
    }
    SECTION("that is refused") {
      child.answer("100", "\"InvalidStateException\"");
      CHECK(child.take_events() == shard_events{observer::checkpoint_answered{
                                       first, milliseconds(7), "InvalidStateException"}});
    }
    SECTION("that is not answered: the daemon continues") {
      child.records({});
      CHECK(child.take_events() ==
            shard_events{observer::checkpoint_answered{first, milliseconds(7), "not answered"},
                         observer::batch_delivered{}});
    }
    SECTION("that is not answered: the input ends") {
      child.end_input();
      CHECK(child.take_events() ==
            shard_events{observer::checkpoint_answered{first, milliseconds(7), "not answered"},
                         observer::session_ended{exit_status::ok}});
    }
  }
  SECTION("of a shard that is finished") {
    child.receive_and_run(GENERATE(R"({"action":"shardEnded"})",
                                   R"({"action":"shutdown","reason":"SHARD_END"})",
                                   R"({"action":"shutdown","reason":"TERMINATE"})"));
    child.receive(R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})");
    CHECK(child.take_events() ==
          shard_events{observer::callback_ended{observer::callback_kind::shard_ended, took_none},
                       observer::checkpoint_requested{end},
                       observer::checkpoint_answered{end, took_none},
                       observer::lease_ended{observer::lease_ended::reason::shard_finished}});
  }
  SECTION("of a shard whose end is not persisted, since the lease is lost") {
    child.receive_and_run(R"({"action":"shardEnded"})");
    child.receive(
        R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":"ShutdownException"})");
    CHECK(child.take_events() ==
          shard_events{observer::callback_ended{observer::callback_kind::shard_ended, took_none},
                       observer::checkpoint_requested{end},
                       observer::checkpoint_answered{end, took_none, "ShutdownException"},
                       observer::lease_ended{observer::lease_ended::reason::lost}});
  }
  SECTION("of a lease that is lost, whose call was waiting when a timer gave the shard up") {
    child.records({});
    child.take_events();
    child.timer_throws(std::make_exception_ptr(fenced_error("epoch 7")));
    child.run_call();
    CHECK(child.take_events().empty());
    child.receive_and_run(R"({"action":"leaseLost"})");
    CHECK(child.take_events() ==
          shard_events{observer::lease_ended{observer::lease_ended::reason::lost},
                       observer::callback_ended{observer::callback_kind::lease_lost, took_none}});
  }
  SECTION("of a lease that is lost, when no processor could be made") {
    driven_host unmade({}, [](const shard_context&) -> std::unique_ptr<record_processor> {
      throw fenced_error("epoch 7");
    });
    unmade.observe_events();
    unmade.initialize();
    unmade.take_events();
    unmade.receive(R"({"action":"leaseLost"})");
    CHECK(unmade.take_events() ==
          shard_events{observer::lease_ended{observer::lease_ended::reason::lost}});
  }
  SECTION("of a shard that was given up and ends, when the lease is lost") {
    child.records({"200"});
    child.async_checkpoint("200", {});
    child.lasts();
    child.answer("200", R"("ShutdownException")");
    child.timer_throws(std::make_exception_ptr(std::runtime_error("no table")));
    child.run_call();
    child.take_events();
    child.receive(R"({"action":"shardEnded"})");
    CHECK(child.take_events() ==
          shard_events{observer::lease_ended{observer::lease_ended::reason::lost}});
  }
  SECTION("of a lease that is lost") {
    child.receive(R"({"action":"leaseLost"})");
    CHECK(child.take_events() ==
          shard_events{observer::lease_ended{observer::lease_ended::reason::lost}});
  }
}

TEST_CASE("without observers no events are made", "[driver][observer]") {
  driven_host child;
  child.initialize();
  child.process({"100"});
  child.answer("100");
  child.end_input();
  CHECK(child.driver.status() == exit_status::ok);
  CHECK(child.events.empty());
}

TEST_CASE("observers hear how a callback has ended", "[driver][observer]") {
  const auto ended = [](processor_factory factory) {
    driven_host child({}, std::move(factory));
    child.initialize();
    child.observe_events();
    child.process({});
    REQUIRE(child.events.size() > 1);
    return std::get<observer::callback_ended>(child.events[1]);
  };
  const auto threw = ended([](const record_batch&) { throw std::runtime_error("no table"); });
  CHECK(threw.how == observer::callback_ended::outcome::threw);
  CHECK(threw.error == "process_records (no records) failed: no table");
  const auto fenced = ended([](const record_batch&) { throw fenced_error("epoch 7"); });
  CHECK(fenced.how == observer::callback_ended::outcome::lease_gone);
  CHECK(fenced.error.starts_with("process_records (no records) ended early: epoch 7"));
}

TEST_CASE("for observers an exception ends the session only while the lease is held",
          "[driver][observer]") {
  driven_host child({}, [](const record_batch&) { throw std::runtime_error("no table"); });
  child.initialize();
  child.observe_events();
  child.records({"100"});
  child.async_checkpoint("100", {});
  child.lasts();
  child.answer("100", R"("ShutdownException")");
  child.take_events();
  child.run_call();
  CHECK_FALSE(child.driver.status());
  CHECK(std::get<observer::callback_ended>(child.take_events().at(0)).how ==
        observer::callback_ended::outcome::lease_gone);
}
