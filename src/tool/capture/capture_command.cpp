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

/// Moves a standard descriptor to another number, and puts /dev/null in its place: then closing the
/// copy ends the dialogue for the other side, and no file that is opened later gets its number.
io::descriptor take_over(int standard, const std::string& name) {
  io::descriptor own(::fcntl(standard, F_DUPFD_CLOEXEC, 3));
  if (!own.is_open()) throw std::system_error(errno, std::generic_category(), name);
  const io::descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (::dup2(null.get(), standard) == -1) {
    throw std::system_error(errno, std::generic_category(), name);
  }
  return own;
}

/// Tells the child who the daemon is: its parent is this process.
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
  // The child has dumped its core, if the system wants one. A second core would be that of kclxx.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(ending.signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::kill(::getpid(), ending.signal);
  std::_Exit(128 + ending.signal);
}

/// The kernel copies out of a pipe several times as fast to the beginning of a page.
struct alignas(4096) page_aligned {
  std::array<char, std::size_t{256} << 10> bytes;
};

/// Waits until `source` has bytes or has ended. False: nobody reads `target`. The writer then has
/// to learn this at once, as it would without kclxx between the two, and not at its next bytes.
bool wait_for_bytes(const io::descriptor& source, const io::descriptor& target) {
  for (;;) {
    pollfd both[] = {{source.get(), POLLIN, 0}, {target.get(), 0, 0}};
    if (::poll(both, 2, -1) == -1) continue;  // EINTR
    if ((both[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return false;
    if (both[0].revents != 0) return true;
  }
}

/// Copies one direction of a dialogue, as the bytes come and unchanged, and records them. It
/// returns when `source` has ended, or nobody reads `target`. Both are then closed, so that each
/// side sees at once what happened on the other side.
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

/// The state that the threads share.
struct capture {
  recorder record;
  std::optional<child_process> child{};
};

/// Relays both directions, and leaves the process as the child does. The thread that reads the
/// daemon may still wait for it then. So it is detached, and the shared state is never destroyed.
[[noreturn]] void run_to_the_end(capture& shared, io::descriptor input, io::descriptor output) {
  std::thread([&shared, from = std::move(input), to = std::move(shared.child->input)]() mutable {
    relay(std::move(from), std::move(to), shared.record, entry_kind::daemon_line);
  }).detach();
  std::thread to_daemon([&shared, to = std::move(output)]() mutable {
    relay(std::move(shared.child->output), std::move(to), shared.record, entry_kind::child_line);
  });
  const child_exit ending = shared.child->wait();
  // Programs that the child has started may still hold its output. The daemon, too, waits for them.
  to_daemon.join();
  ending.signal == 0 ? shared.record.finish(entry_kind::exit, ending.status)
                     : shared.record.finish(entry_kind::killed, ending.signal);
  leave_as(ending);
}

[[noreturn]] void run_capture(const std::string& directory,
                              const std::vector<std::string>& command) {
  try {
    io::outlive_signals();
    name_daemon();
    io::descriptor input = take_over(STDIN_FILENO, "stdin");
    io::descriptor output = take_over(STDOUT_FILENO, "stdout");
    std::unique_ptr<capture> shared(new capture{{directory, command.front()}});
    try {
      shared->child.emplace(command);
    } catch (const start_error&) {
      shared->record.discard();
      throw;
    }
    run_to_the_end(*shared.release(), std::move(input), std::move(output));
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
