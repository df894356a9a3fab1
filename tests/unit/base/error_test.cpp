// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <kclxx/error.hpp>

#include "support/catch.hpp"

using namespace kclxx;

TEST_CASE("every error says in a sentence what happened and what to do", "[error]") {
  std::set<std::string> seen;
  for (int value = 1; value <= static_cast<int>(errc::not_answered); ++value) {
    const std::string text = make_error_code(static_cast<errc>(value)).message();
    CHECK(text.find("unknown") == std::string::npos);
    CHECK(seen.insert(text).second);
  }
  for (int value = 1; value <= static_cast<int>(checkpoint_errc::other); ++value) {
    const std::string text = make_error_code(static_cast<checkpoint_errc>(value)).message();
    CHECK(text.find("unknown") == std::string::npos);
    CHECK(seen.insert(text).second);
  }
}

TEST_CASE("the daemon's names are an open set, of which two are retried", "[error][P12]") {
  CHECK(checkpoint_errc_from_name("ThrottlingException") == checkpoint_errc::throttled);
  CHECK(checkpoint_errc_from_name("KinesisClientLibDependencyException") ==
        checkpoint_errc::dependency);
  CHECK(checkpoint_errc_from_name("ShutdownException") == checkpoint_errc::shutdown);
  CHECK(checkpoint_errc_from_name("InvalidStateException") == checkpoint_errc::invalid_state);
  CHECK(checkpoint_errc_from_name("IllegalArgumentException") == checkpoint_errc::illegal_argument);
  CHECK(checkpoint_errc_from_name("Brandnew") == checkpoint_errc::other);
  CHECK(checkpoint_errc_from_name("") == checkpoint_errc::other);
  CHECK(is_retryable(checkpoint_errc::throttled));
  CHECK(is_retryable(checkpoint_errc::dependency));
  CHECK_FALSE(is_retryable(checkpoint_errc::shutdown));
  CHECK_FALSE(is_retryable(checkpoint_errc::other));
}

TEST_CASE("a checkpoint_error keeps the daemon's own name", "[error][P12]") {
  const checkpoint_error error(checkpoint_errc::other, "SomeNewException");
  CHECK(error.name() == "SomeNewException");
  CHECK(error.code() == checkpoint_errc::other);
  CHECK(checkpoint_error(errc::lease_lost).name().empty());
  CHECK(errc::lease_lost != make_error_code(checkpoint_errc::throttled));
}
