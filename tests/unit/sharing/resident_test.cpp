// SPDX-License-Identifier: Apache-2.0
// The resident with sessions, launchers and a daemon that are played. Each case runs in a forked
// copy, which an alarm ends if it waits indefinitely: descriptors 1 and 2 belong to the process.
#include "sharing/resident.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "io/event_loop.hpp"
#include "io/signals.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"
#include "support/sent_packet.hpp"
#include "support/temporary_folder.hpp"

namespace kclxx::sharing {

namespace {

using io::descriptor;
using test::bytes_of;
using test::first_false;
using test::moment;
using test::try_to_send_packet;

/// A process that lives until end().
class played_daemon {
 public:
  [[nodiscard]] io::process_identity identity() const {
    const auto id = static_cast<std::uint64_t>(process_.pid());
    return {id, io::start_of(id)};
  }
  void end() { until_.close_write_end(); }

 private:
  test::open_pipe until_;
  test::forked_copy process_{[this] {
    char byte = 0;
    until_.close_write_end();
    return static_cast<int>(::read(until_.read_end(), &byte, 1));
  }};
};

/// A launcher with the pipe that its shard has as stderr.
class launcher {
 public:
  explicit launcher(descriptor socket) : socket_(std::move(socket)) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // the other end waits for a reader, as a shard's does
    read_end_ = descriptor(ends[0]);
    write_end_ = descriptor(ends[1]);
  }

  void connect_to(const sockaddr* address, socklen_t size) {
    REQUIRE(::connect(socket_.get(), address, size) == 0);
  }
  void offer(const played_daemon& daemon) { REQUIRE(try_to_offer(daemon)); }
  /// The resident may have closed the connection.
  bool try_to_offer(const played_daemon& daemon) {
    shard_message message;
    message.daemon = daemon.identity();
    const bool is_sent =
        try_to_send_packet(socket_.get(), bytes_of(message), std::vector<int>(3, write_end_.get()));
    write_end_.close();
    return is_sent;
  }
  /// Whether what it offers is accepted.
  bool hand_over(const played_daemon& daemon) {
    offer(daemon);
    return is_accepted();
  }
  /// Waits for it; std::nullopt: the connection has ended.
  std::optional<reply_message> reply() {
    reply_message one;
    return ::recv(socket_.get(), &one, sizeof one, 0) == sizeof one ? std::optional(one)
                                                                    : std::nullopt;
  }
  bool is_accepted() {
    const auto one = reply();
    return one && one->header.kind == message_kind::accepted;
  }
  bool is_refused(std::string_view reason) {
    const auto one = reply();
    return one && one->header.kind == message_kind::refused && one->reason == reason;
  }
  bool has_ended_with(exit_status status) {
    const auto one = reply();
    return one && one->header.kind == message_kind::ended &&
           one->status == static_cast<int>(status);
  }
  /// What came at stderr; std::nullopt: nothing, and nobody has it open.
  std::optional<std::string> printed() {
    std::array<char, 256> bytes{};
    const ssize_t size = ::read(read_end_.get(), bytes.data(), bytes.size());
    if (size == 0) return std::nullopt;
    return std::string(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }

 private:
  descriptor socket_;
  descriptor read_end_;
  descriptor write_end_;
};

/// What a resident is started with.
class resident_environment {
 public:
  resident_environment() {
    ::alarm(60);
    io::outlive_signals();  // as run() does: the reader of a shard's stderr may be gone
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    starter_ = descriptor(ends[0]);
    start_.connection = descriptor(ends[1]);
    start_.folder = descriptor(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    start_.listening = descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(start_.listening.get(), address(), sizeof address_) == 0);
    REQUIRE(::listen(start_.listening.get(), 1024) == 0);
    struct stat file {};
    REQUIRE(::stat(address_.sun_path, &file) == 0);
    start_.socket_inode = file.st_ino;
    start_.socket_name = "name";
    start_.daemon = daemon.identity();
  }

  /// Of the process that the launcher has started; call each once.
  inheritance start() { return std::move(start_); }
  launcher starter() { return launcher(std::move(starter_)); }
  launcher connect() {
    descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(socket.get(), address(), sizeof address_) == 0);
    return launcher(std::move(socket));
  }
  /// Connects while this process cannot open a further descriptor, until the resident has tried to
  /// accept the connection.
  launcher connect_without_descriptors() {
    descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    launcher next(std::move(socket));
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    next.connect_to(address(), sizeof address_);
    // The resident tries at once, and each 100 ms: it has failed before the limit is lifted.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    return next;
  }
  [[nodiscard]] bool has_socket() const { return std::filesystem::exists(address_.sun_path); }

  played_daemon daemon;

 private:
  const sockaddr* address() {
    address_.sun_family = AF_UNIX;
    (folder_.path() / "name").string().copy(address_.sun_path, sizeof address_.sun_path - 1);
    return reinterpret_cast<const sockaddr*>(&address_);
  }

  test::temporary_folder folder_;
  sockaddr_un address_{};
  inheritance start_;
  descriptor starter_;
};

/// What a session of the test does.
struct played_session {
  std::function<exit_status()> serve = [] { return exit_status::ok; };
  std::function<void()> end_input = [] {};
  std::function<void()> leave_loop = [] {};
};

class session_of : public shard_session {
 public:
  explicit session_of(played_session does) : does_(std::move(does)) {}
  exit_status serve() override { return does_.serve(); }
  void end_input() override { does_.end_input(); }
  void leave_loop() override { does_.leave_loop(); }

 private:
  played_session does_;
};

session_maker each(const played_session& does) {
  return [does](const handed_shard&, io::event_loop&, const std::function<void()>&) {
    return std::make_unique<session_of>(does);
  };
}

/// What a session does that waits. A thread that is stuck may outlive the test's body, so it shares
/// what it waits for.
std::function<exit_status()> waits_for(std::shared_ptr<moment> end) {
  return [end = std::move(end)] {
    end->wait();
    return exit_status::ok;
  };
}

/// `launchers` are played on a thread of their own, next to the resident. Then the daemon ends.
exit_status serve(resident_environment& environment, const session_maker& make_session,
                  const std::function<void()>& launchers) {
  std::thread others([&] {
    launchers();
    environment.daemon.end();
  });
  const exit_status status =
      serve_shards(environment.start(), make_session, std::chrono::milliseconds(500));
  others.join();
  return status;
}

/// With the launcher that has started the resident. `body` returns first_false().
void check_in_copy(const std::function<int(resident_environment&, launcher&)>& body,
                   int expected = 0) {
  const auto copy = test::in_forked_copy([&] {
    resident_environment environment;
    launcher starter = environment.starter();
    return body(environment, starter);
  });
  INFO(copy.err);
  CHECK(copy.status == expected);
}

}  // namespace

TEST_CASE("a resident whose daemon has ended before leaves no socket", "[sharing]") {
  check_in_copy([](resident_environment& environment, launcher&) {
    inheritance start = environment.start();
    ++start.daemon.start;  // another process with its number
    bool is_refused = false;
    try {
      serve_shards(std::move(start), each({}), std::chrono::milliseconds(500));
    } catch (const std::system_error&) {
      is_refused = true;
    }
    return first_false({is_refused, !environment.has_socket()});
  });
}

namespace {

/// A thread_local object whose destructor does something, as that of a client that flushes does.
struct at_thread_end {
  ~at_thread_end() {
    if (does) does();
  }
  std::function<void()> does;
};
thread_local at_thread_end at_end;

}  // namespace

TEST_CASE("nothing of a shard is open once its launcher has heard the end, stuck or not",
          "[sharing]") {
  check_in_copy([](resident_environment& environment, launcher& starter) {
    const auto never = std::make_shared<moment>();
    const auto make = [&](const handed_shard&, io::event_loop&, std::function<void()> on_stuck) {
      return std::make_unique<session_of>(
          played_session{.serve = waits_for(never), .end_input = std::move(on_stuck)});
    };
    launcher other = environment.connect();
    bool holds = false;
    const exit_status status = serve(environment, make, [&] {
      holds = starter.hand_over(environment.daemon) && other.hand_over(environment.daemon);
      environment.daemon.end();
      for (launcher* one : {&starter, &other}) {
        holds = holds && one->has_ended_with(exit_status::callback_stuck) && !one->printed() &&
                !one->reply();
      }
    });
    return first_false({holds, status == exit_status::callback_stuck});
  });
}

TEST_CASE("a shard without a session is refused with the reason, and nothing of it is open",
          "[sharing]") {
  check_in_copy([](resident_environment& environment, launcher& starter) {
    const auto make = [](const handed_shard&, io::event_loop&,
                         const std::function<void()>&) -> std::unique_ptr<shard_session> {
      throw std::runtime_error("no memory");
    };
    bool holds = false;
    serve(environment, make, [&] {
      starter.offer(environment.daemon);
      holds = starter.is_refused("no memory") && !starter.printed() && !starter.reply();
    });
    return first_false({holds});
  });
}

TEST_CASE("a thread_local object that takes long to destroy holds up no shard", "[sharing]") {
  const bool comes_back = GENERATE(true, false);
  check_in_copy([&](resident_environment& environment, launcher& first) {
    const auto destroyed = std::make_shared<moment>();
    const played_session slow{.serve = [destroyed] {
      at_end.does = [destroyed] { destroyed->wait(); };
      return exit_status::ok;
    }};
    bool has_ended = false;
    bool is_next_served = false;
    const exit_status status = serve(environment, each(slow), [&] {
      has_ended = first.hand_over(environment.daemon) && first.has_ended_with(exit_status::ok) &&
                  !first.printed() && !first.reply();
      launcher next = environment.connect();
      is_next_served = next.hand_over(environment.daemon) && next.has_ended_with(exit_status::ok);
      if (comes_back) destroyed->come();
    });
    return first_false({has_ended, is_next_served,
                        status == (comes_back ? exit_status::ok : exit_status::callback_stuck)});
  });
}

#ifndef KCLXX_IS_SANITIZED  // AddressSanitizer ends a process that has no descriptors left for it

TEST_CASE("a launcher that comes while the resident has no descriptors left is served by it later",
          "[sharing]") {
  check_in_copy([&](resident_environment& environment, launcher& first) {
    bool is_first_served = false;
    bool is_next_served = false;
    bool is_last_served = false;
    serve(environment, each({}), [&] {
      is_first_served = first.hand_over(environment.daemon);
      launcher next = environment.connect_without_descriptors();
      is_next_served = next.hand_over(environment.daemon);
      launcher last = environment.connect();
      is_last_served = last.hand_over(environment.daemon);
    });
    return first_false({is_first_served, is_next_served, is_last_served});
  });
}

#endif

TEST_CASE("a program that becomes another user serves the launchers of the user that started it",
          "[sharing]") {
  constexpr uid_t other = 65534;
  if (::geteuid() != 0) {
    WARN("needs root, to become another user");
    return;
  }
  check_in_copy([](resident_environment& environment, launcher&) {
    launcher next = environment.connect();
    const bool is_other = ::seteuid(other) == 0;
    bool is_served = false;
    serve(environment, each({}), [&] { is_served = next.hand_over(environment.daemon); });
    ::seteuid(0);  // or the folder would stay
    return first_false({is_other, is_served});
  });
}

TEST_CASE("a resident whose descriptors user code has closed ends, and does not outlive its daemon",
          "[sharing]") {
  const bool only_of_loop = GENERATE(true, false);
  check_in_copy(
      [&](resident_environment& environment, launcher& first) {
        const played_session closes{.serve = [&] {
          for (int fd = 3; fd < 1024; ++fd) {
            std::error_code error;
            const auto file =
                std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
            if (!only_of_loop || file.string().starts_with("anon_inode:")) ::close(fd);
          }
          return exit_status::daemon_gone;
        }};
        std::thread others([&] { first.hand_over(environment.daemon); });
        serve_shards(environment.start(), each(closes), std::chrono::milliseconds(500));
        others.join();
        return 1;
      },
      static_cast<int>(exit_status::resident_gone));
}

}  // namespace kclxx::sharing
