// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "io/process_identity.hpp"
#include "support/catch.hpp"

namespace kclxx::io {

namespace {

const process_identity parent{4711, 42};

/// A copy of this process that waits for a signal.
class waiting_process {
 public:
  waiting_process() {
    const auto before = std::signal(SIGTERM, SIG_DFL);  // the copy inherits it
    pid_ = ::fork();
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    std::signal(SIGTERM, before);
  }
  ~waiting_process() {
    if (pid_ == -1) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  waiting_process(const waiting_process&) = delete;
  waiting_process& operator=(const waiting_process&) = delete;

  [[nodiscard]] process_identity identity() const {
    const auto id = static_cast<std::uint64_t>(pid_);
    return {id, start_of(id)};
  }
  /// The signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

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
  waiting_process other;
  const process_identity its = other.identity();
  CHECK(ask_to_end({its.id, its.start - 1}) == std::errc::no_such_process);
  CHECK(start_of(its.id) == its.start);
  CHECK_FALSE(ask_to_end(its));
  CHECK(other.wait() == SIGTERM);
  CHECK(ask_to_end(its) == std::errc::no_such_process);
}

}  // namespace kclxx::io
