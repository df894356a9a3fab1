// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "io/process_identity.hpp"
#include "io/signals.hpp"
#include "tool/capture/recorder.hpp"
#include "tool/command.hpp"
#include "tool/process/program.hpp"

namespace kclxx::tool {

namespace {

using transcript::entry_kind;

// A private copy, with /dev/null in its place: so that closing it is all that it takes for the
// other side to see it, and no file opened later can take the dialogue's place.
io::descriptor take_over(int standard, const std::string& name) {
  io::descriptor own(::fcntl(standard, F_DUPFD_CLOEXEC, 3));
  if (!own.is_open()) throw std::system_error(errno, std::generic_category(), name);
  const io::descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (::dup2(null.get(), standard) == -1) {
    throw std::system_error(errno, std::generic_category(), name);
  }
  return own;
}

// For the child, whose parent is this process.
void name_daemon() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  const char* const named = std::getenv(io::daemon_variable);
  const auto daemon = io::daemon_process(named ? std::optional<std::string>(named) : std::nullopt,
                                         io::parent_process());
  const std::string value = daemon ? io::to_text(*daemon) : io::no_daemon;
  ::setenv(io::daemon_variable, value.c_str(), 1);
}

[[noreturn]] void leave_as(const child_exit& ending) {
  if (ending.signal == 0) std::_Exit(ending.status);
  // The child has dumped its core, if it wanted to.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(ending.signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::kill(::getpid(), ending.signal);
  std::_Exit(128 + ending.signal);
}

// On a page's beginning the kernel copies out of a pipe several times as fast.
struct alignas(4096) page_aligned {
  std::array<char, std::size_t{256} << 10> bytes;
};

// True when something can be read or has ended; false when nobody reads `target`. A reader that is
// gone must be known to the writer as soon as without us, not when the next bytes come.
bool wait_for_bytes(const io::descriptor& source, const io::descriptor& target) {
  for (;;) {
    pollfd both[] = {{source.get(), POLLIN, 0}, {target.get(), 0, 0}};
    if (::poll(both, 2, -1) == -1) continue;  // EINTR
    if ((both[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return false;
    if (both[0].revents != 0) return true;
  }
}

/// Copies one direction of a dialogue, as the bytes come and unchanged, and records them. Runs
/// until `source` ends or nobody reads `target`, and closes both then, so that either side sees at
/// once what happened on the other.
void relay(io::descriptor source, io::descriptor target, recorder& record,
           entry_kind line_of_side) {
  const auto memory = std::make_unique<page_aligned>();
  while (wait_for_bytes(source, target)) {
    const ssize_t n = ::read(source.get(), memory->bytes.data(), memory->bytes.size());
    if (n == -1 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      record.add_end(line_of_side == entry_kind::daemon_line ? entry_kind::end_of_input
                                                             : entry_kind::end_of_output);
      return;
    }
    const std::string_view bytes(memory->bytes.data(), static_cast<std::size_t>(n));
    record.add(line_of_side, bytes);
    if (io::write_all(target.get(), bytes)) return;
  }
}

/// What the threads share.
struct capture {
  recorder record;
  std::optional<child_process> child{};
};

// The thread that reads the daemon may wait for it indefinitely, so what the threads share is never
// destroyed: the process leaves from here.
[[noreturn]] void run_to_the_end(capture& all, io::descriptor input, io::descriptor output) {
  std::thread([&all, from = std::move(input), to = std::move(all.child->input)]() mutable {
    relay(std::move(from), std::move(to), all.record, entry_kind::daemon_line);
  }).detach();
  std::thread to_daemon([&all, to = std::move(output)]() mutable {
    relay(std::move(all.child->output), std::move(to), all.record, entry_kind::child_line);
  });
  const child_exit ending = all.child->wait();
  // Programs that the child started may still hold its output; the daemon would wait for them.
  to_daemon.join();
  ending.signal == 0 ? all.record.finish(entry_kind::exit, ending.status)
                     : all.record.finish(entry_kind::killed, ending.signal);
  leave_as(ending);
}

[[noreturn]] void run_capture(const std::string& directory,
                              const std::vector<std::string>& command) {
  try {
    io::outlive_signals();
    name_daemon();
    io::descriptor input = take_over(STDIN_FILENO, "stdin");
    io::descriptor output = take_over(STDOUT_FILENO, "stdout");
    std::unique_ptr<capture> all(new capture{{directory, command.front()}});
    try {
      all->child.emplace(command);
    } catch (const start_error&) {
      all->record.discard();
      throw;
    }
    run_to_the_end(*all.release(), std::move(input), std::move(output));
  } catch (const std::exception& error) {
    throw command_error(command_status::setup_failed, error.what());
  }
}

}  // namespace

void add_capture_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"capture",
       "Runs between the daemon and a child, as executableName, and records their dialogue.\n"
       "Exits with the child's exit status, or by the signal that ended it.\n"
       "The transcript holds the records' data; only its owner can read it.",
       "kclxx capture --output captured -- ./word_count counts"},
      child_use::required, run);
  auto directory = std::make_shared<std::string>();
  add_option(command, "DIR", "--output", *directory,
             "The directory for the transcript; made, for its owner only, when it is missing")
      ->required();
  command.callback([directory, &run] { run_capture(*directory, run.child); });
}

}  // namespace kclxx::tool
