// SPDX-License-Identifier: Apache-2.0
// each(): one record at a time, and what becomes of those that fail.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "unit/processing/memory_lot.hpp"

namespace {

using kclxx::exhausted;
using kclxx::failure_policy;
using kclxx::record;
using kclxx::sequence_position;
using test_daemon = kclxx::testing::daemon;
using namespace std::chrono_literals;
using positions = std::vector<sequence_position>;
using strings = std::vector<std::string>;

/// Counts the calls for each payload, and fails those that begin with "bad" that many times.
struct flaky {
  int failures = 1'000'000;
  std::map<std::string, int> calls{};
  strings done{};

  void operator()(const record& one) {
    const std::string data(one.data());
    const int call = ++calls[data];
    if (data.starts_with("bad") && call <= failures) throw std::runtime_error(data + " failed");
    done.push_back(data);
  }
};

/// Checkpoints with every batch.
kclxx::run_options prompt() {
  kclxx::run_options options;
  options.checkpoint_interval = 0ms;
  return options;
}

strings log_of(const test_daemon& from) {
  strings lines;
  for (const auto& entry : from.log()) lines.push_back(entry.text);
  return lines;
}

bool logged(const test_daemon& from, const std::string& text) {
  const auto lines = log_of(from);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("each calls the handler for every record in order, and checkpoints the batch",
          "[processing][each]") {
  flaky handler;
  test_daemon with(kclxx::each(std::ref(handler)), prompt());
  with.initialize().deliver({"a", "b", "c"}).deliver({}).deliver({"d"});
  INFO(with);
  CHECK(handler.done == strings{"a", "b", "c", "d"});
  CHECK(with.persisted() == sequence_position("4"));
}

TEST_CASE("a record that fails is tried again, and what was before it is not",
          "[processing][each]") {
  flaky handler{.failures = 2};
  test_daemon with(kclxx::each(std::ref(handler)), prompt());
  const auto begin = with.now();
  with.initialize().deliver({"a", "bad", "c"});
  INFO(with);
  CHECK(handler.calls == std::map<std::string, int>{{"a", 1}, {"bad", 3}, {"c", 1}});
  CHECK(with.persisted() == sequence_position("3"));
  CHECK(with.now() - begin >= 300ms);
  CHECK(with.now() - begin <= 600ms);
}

TEST_CASE("by default a record that keeps failing ends the session, and the log names it",
          "[processing][each]") {
  flaky handler;
  test_daemon with(kclxx::each(std::ref(handler)), prompt());
  with.initialize().deliver({"a", "bad", "c"});
  INFO(with);
  CHECK(with.exit_status() == kclxx::exit_status::callback_failed);
  CHECK(handler.calls == std::map<std::string, int>{{"a", 1}, {"bad", 5}});
  CHECK(with.persisted() == sequence_position("1"));
  CHECK(logged(with, "record 2/0 (partition key 'key') failed after 5 attempts"));
  CHECK_THROWS_WITH(std::rethrow_exception(with.thrown()), "bad failed");
}

TEST_CASE("a parked record is complete", "[processing][each]") {
  flaky handler;
  const auto lot = std::make_shared<kclxx::test::memory_lot>();
  test_daemon with(
      kclxx::each(std::ref(handler), {.attempts = 3, .exhausted = exhausted::park, .lot = lot}),
      prompt());
  with.initialize().deliver({"a", "bad", "c"});
  INFO(with);
  CHECK(handler.done == strings{"a", "c"});
  CHECK(with.persisted() == sequence_position("3"));
  CHECK(lot->all ==
        std::vector<kclxx::test::memory_lot::parked>{{"bad", 3, "bad failed", "bad failed"}});
  CHECK(logged(with, "record 2/0 (partition key 'key') parked after 3 attempts"));
}
