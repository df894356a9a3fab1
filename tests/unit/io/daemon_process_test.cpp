// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>

#include "io/process_identity.hpp"
#include "support/catch.hpp"
#include "support/forked.hpp"

namespace kclxx::io {

namespace {

const process_identity parent{4711, 42};

}  // namespace

TEST_CASE("the variable names the daemon as long as it lives, else it is the parent",
          "[io][daemon]") {
  const process_identity own = this_process();
  CHECK(daemon_process(to_text(own), parent) == own);
  CHECK(daemon_process(std::nullopt, parent) == parent);
  const std::string other_start = to_text({own.id, own.start + 1});
  for (const std::string& stale :
       {other_start, std::string(), std::string("x"), std::to_string(own.id), std::string("0 0")}) {
    INFO(stale);
    CHECK(daemon_process(stale, parent) == parent);
  }
  CHECK_FALSE(daemon_process(no_daemon, parent));
  CHECK_FALSE(daemon_process(std::nullopt, process_identity{1, 0}));
  CHECK(parent_process().id == static_cast<std::uint64_t>(::getppid()));
  CHECK(parent_process().start == start_of(parent_process().id));
}

TEST_CASE("a process that got the daemon's number after it is not signalled", "[io][daemon]") {
  test::forked_copy process([]() -> int {
    std::signal(SIGTERM, SIG_DFL);  // Catch2 has a handler
    for (;;) ::pause();
  });
  const auto id = static_cast<std::uint64_t>(process.pid());
  const process_identity its{id, start_of(id)};
  CHECK(ask_to_end({its.id, its.start - 1}) == std::errc::no_such_process);
  CHECK(start_of(its.id) == its.start);
  CHECK_FALSE(ask_to_end(its));
  CHECK(process.wait() == 128 + SIGTERM);
  CHECK(ask_to_end(its) == std::errc::no_such_process);
}

}  // namespace kclxx::io
