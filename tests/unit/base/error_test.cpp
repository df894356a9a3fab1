// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <set>
#include <string>
#include <unistd.h>

#include <kclxx/error.hpp>

#include "support/catch.hpp"
#include "support/forked.hpp"

using namespace kclxx;

namespace {

// Constructed before any category is used, and so destroyed after it would be.
struct static_object {
  ~static_object() {
    if (!is_watched) return;
    const bool works = make_error_code(errc::lease_lost) == checkpoint_condition::lease_gone &&
                       !make_error_code(errc::lease_lost).message().empty() &&
                       !make_checkpoint_error_code("AtExit").message().empty();
    ::_exit(works ? 42 : 1);
  }
  bool is_watched = false;
} lives_longest;

}  // namespace

TEST_CASE("every error has a message that names the cause and the remedy", "[error]") {
  std::set<std::string> seen;
  for (int value = 1; value <= static_cast<int>(errc::fenced); ++value) {
    const std::string text = make_error_code(static_cast<errc>(value)).message();
    CHECK(text.find("unknown") == std::string::npos);
    CHECK(text.find(':') != std::string::npos);
    CHECK(seen.insert(text).second);
  }
  for (int value = 1; value <= static_cast<int>(checkpoint_errc::other); ++value) {
    const std::string text = make_error_code(static_cast<checkpoint_errc>(value)).message();
    CHECK(text.find("unknown") == std::string::npos);
    CHECK(text.find(';') != std::string::npos);
    CHECK(seen.insert(text).second);
  }
}

TEST_CASE(
    "the names that are listed map to their enumerators and back, and all others are one error",
    "[error][P12]") {
  const auto check = [](const char* name, checkpoint_errc value) {
    CHECK(make_checkpoint_error_code(name) == value);
    CHECK(daemon_error_name(value) == name);
    CHECK(make_error_code(value).message().find(name) == 0);
  };
  check("ThrottlingException", checkpoint_errc::throttled);
  check("KinesisClientLibDependencyException", checkpoint_errc::dependency);
  check("ShutdownException", checkpoint_errc::shutdown);
  check("InvalidStateException", checkpoint_errc::invalid_state);
  check("IllegalArgumentException", checkpoint_errc::illegal_argument);
  for (const char* const name : {"SomeNewException", "AnotherNewException", ""}) {
    CHECK(make_checkpoint_error_code(name) == checkpoint_errc::other);
  }
  CHECK(daemon_error_name(checkpoint_errc::other).empty());
}

TEST_CASE("two of the daemon's errors are retried, and none of this library's", "[error][P41]") {
  CHECK(make_error_code(checkpoint_errc::throttled) == checkpoint_condition::retryable);
  CHECK(make_error_code(checkpoint_errc::dependency) == checkpoint_condition::retryable);
  CHECK(make_checkpoint_error_code("ThrottlingException") == checkpoint_condition::retryable);
  CHECK_FALSE(make_error_code(checkpoint_errc::shutdown) == checkpoint_condition::retryable);
  CHECK_FALSE(make_checkpoint_error_code("SomeNewException") == checkpoint_condition::retryable);
  CHECK_FALSE(make_error_code(errc::timed_out) == checkpoint_condition::retryable);
  CHECK_FALSE(std::error_code() == checkpoint_condition::retryable);
}

TEST_CASE("only an error of the daemon has a daemon's name", "[error][P12]") {
  CHECK(daemon_error_name(errc::lease_lost).empty());
  CHECK(daemon_error_name(std::error_code()).empty());
  CHECK(daemon_error_name({77, checkpoint_category()}).empty());
  CHECK(checkpoint_error(errc::lease_lost).name().empty());
  CHECK(errc::lease_lost != make_error_code(checkpoint_errc::throttled));
}

TEST_CASE("one condition covers both codes of a lost lease", "[error]") {
  const auto lease_gone = checkpoint_condition::lease_gone;
  CHECK(make_error_code(errc::lease_lost) == lease_gone);
  CHECK(make_error_code(errc::fenced) == lease_gone);
  CHECK(kclxx::fenced_error("epoch 7").code() == errc::fenced);
  CHECK(std::string(kclxx::fenced_error("epoch 7").what()).starts_with("epoch 7: fenced: "));
  CHECK(make_checkpoint_error_code("ShutdownException") == lease_gone);
  CHECK(make_error_code(errc::daemon_gone) != lease_gone);
  CHECK(make_error_code(checkpoint_errc::throttled) != lease_gone);
  CHECK(std::error_code() != lease_gone);
}

TEST_CASE("error codes can be used while static objects are destroyed", "[error]") {
  const auto body = []() -> int {
    static_cast<void>(make_error_code(errc::lease_lost).message());
    static_cast<void>(make_checkpoint_error_code("BeforeExit").message());
    lives_longest.is_watched = true;
    std::exit(0);
  };
  CHECK(test::in_forked_copy(body).status == 42);
}
