// SPDX-License-Identifier: Apache-2.0
// The test plays a launcher or a resident of kclxx-share.
#pragma once

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include "io/descriptor.hpp"
#include "process/shared_machine.hpp"
#include "sharing/handed_shard.hpp"
#include "sharing/inheritance.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"
#include "support/sent_packet.hpp"

namespace kclxx::test {

using namespace sharing;
using io::descriptor;
using io::process_identity;
using io::this_process;

inline sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

inline descriptor bind_at(const fs::path& path) {
  const sockaddr_un address = address_of(path);
  descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

/// The socket of a resident that listens.
inline descriptor listen_at(const fs::path& path) {
  descriptor socket = bind_at(path);
  REQUIRE(::listen(socket.get(), 16) == 0);
  return socket;
}

inline descriptor accept_at(const descriptor& listening) {
  descriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted.is_open());
  return accepted;
}

/// The shard that a launcher of this daemon hands over. Blocking: until the launcher has sent it.
inline handed_shard receive_at(const descriptor& connection, const process_identity& daemon) {
  char byte = 0;
  REQUIRE(::recv(connection.get(), &byte, 1, MSG_PEEK) == 1);
  auto received = receive_shard(connection.get(), daemon);
  REQUIRE(std::holds_alternative<handed_shard>(received));
  return std::move(std::get<handed_shard>(received));
}

/// A played resident in a process of its own. It listens when the constructor returns, then takes
/// its steps, and waits until it is killed.
class played_resident {
 public:
  using steps = std::function<void(const descriptor& listening)>;

  played_resident(const fs::path& path, const steps& take)
      : process_(std::in_place, [&, this]() -> int {
          const descriptor listening = listen_at(path);
          if (::write(told_.write_end(), "l", 1) != 1) return 1;
          take(listening);
          if (::write(told_.write_end(), "d", 1) != 1) return 1;
          for (;;) ::pause();
        }) {
    told_.close_write_end();
    await_steps();
  }

  /// Waits until it listens and, at the next call, until it has taken its steps.
  void await_steps() const {
    char byte = 0;
    REQUIRE(::read(told_.read_end(), &byte, 1) == 1);
  }
  void kill() { process_.reset(); }

 private:
  open_pipe told_;
  std::optional<forked_copy> process_;
};

/// The connection of a played launcher to the resident.
inline descriptor connect_to(const fs::path& path) {
  const sockaddr_un address = address_of(path);
  descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
  return socket;
}

/// The reply of a resident; std::nullopt: the connection has ended.
inline std::optional<reply_message> reply_at(const descriptor& connection) {
  reply_message reply;
  ssize_t size = -1;
  do {
    size = ::recv(connection.get(), &reply, sizeof reply, 0);
  } while (size == -1 && (errno == EINTR || errno == ECONNRESET));
  return size == sizeof reply ? std::optional(reply) : std::nullopt;
}

inline shard_message own_message() {
  shard_message message;
  message.daemon = this_process();
  return message;
}

/// The path of a socket whose resident was killed, so that no process listens.
inline fs::path socket_of_killed_resident(const machine& box) {
  const launched only = box.initialized("a");
  fs::path path = box.socket();
  ::kill(box.process_of("a"), SIGKILL);
  CHECK(only->wait_exit() == resident_gone);
  return path;
}

/// A program that waits until the file `gate` is gone before it becomes test_child.
inline words gated(const machine& box) {
  std::ofstream(box / "gate") << "";
  return {box.program("echo $$ >> '" + (box / "pids").string() + "'\nwhile [ -e '" +
                      (box / "gate").string() + "' ]; do sleep 0.01; done\nexec '" + child +
                      "' manual\n")};
}

inline std::vector<pid_t> waiting_at_gate(const machine& box) {
  std::ifstream in(box / "pids");
  std::vector<pid_t> processes;
  for (pid_t process = 0; in >> process;) processes.push_back(process);
  return processes;
}

struct pipes {
  /// The child's ends.
  [[nodiscard]] std::vector<int> to_pass() const {
    return {input.read_end(), output.write_end(), error.write_end()};
  }
  open_pipe input;
  open_pipe output;
  open_pipe error;
};

}  // namespace kclxx::test
