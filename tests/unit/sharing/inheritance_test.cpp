// SPDX-License-Identifier: Apache-2.0
#include "sharing/inheritance.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/forked.hpp"
#include "support/temporary_folder.hpp"

namespace kclxx::sharing {

namespace {

void set_variable(const std::string& value) { ::setenv(resident_variable, value.c_str(), 1); }

/// A folder with the file of a socket.
struct meeting_place {
  meeting_place() {
    std::ofstream(path()) << "";
    struct stat file {};
    ::stat(path().c_str(), &file);
    start.folder = open_folder();
    start.socket_name = "name";
    start.socket_inode = file.st_ino;
  }
  [[nodiscard]] std::filesystem::path path() const { return folder.path() / "name"; }
  [[nodiscard]] io::descriptor open_folder() const {
    return io::descriptor(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  [[nodiscard]] bool has_socket() const { return std::filesystem::exists(path()); }

  test::temporary_folder folder;
  inheritance start;
};

/// The three, and the variable; for this process alone.
void start_as_resident() {
  std::array<int, 4> opened{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, opened.data()) == 0);
  opened[2] = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const sockaddr_un no_name{AF_UNIX, {}};
  REQUIRE(::bind(opened[2], reinterpret_cast<const sockaddr*>(&no_name), sizeof(sa_family_t)) == 0);
  REQUIRE(::listen(opened[2], 1) == 0);
  opened[3] = ::open(".", O_RDONLY | O_DIRECTORY);
  for (int& fd : opened) fd = ::fcntl(fd, F_DUPFD, 10);  // out of the way
  ::dup2(opened[2], listening_descriptor);
  ::dup2(opened[0], connection_descriptor);
  ::dup2(opened[3], folder_descriptor);
  set_variable(std::to_string(::getpid()) + " 17 42 4711 name");
}

}  // namespace

TEST_CASE("what main has opened in place of the resident's descriptors is its own", "[sharing]") {
  const int which = GENERATE(listening_descriptor, connection_descriptor, folder_descriptor);
  const bool is_other_socket = GENERATE(true, false);
  CHECK(test::in_forked_copy([&] {
          start_as_resident();
          const int other =
              which == listening_descriptor ? connection_descriptor : listening_descriptor;
          ::dup2(is_other_socket ? other : STDIN_FILENO, which);
          try {
            inherited();
          } catch (const std::runtime_error&) {
            return ::fcntl(which, F_GETFD) == -1 ? 1 : 0;
          }
          return 2;
        }).status == 0);
}

TEST_CASE("a process without a whole variable of its own is no resident", "[sharing]") {
  CHECK(test::in_forked_copy([] {
          ::unsetenv(resident_variable);
          return inherited() ? 1 : 0;
        }).status == 0);
  CHECK(test::in_forked_copy([] {
          set_variable(std::to_string(::getppid()) + " 17 42 4711 name");
          return inherited() ? 1 : 0;
        }).status == 0);
  CHECK(test::in_forked_copy([] {
          set_variable(std::to_string(::getpid()) + " 17 42 4711");
          return inherited() ? 1 : 0;
        }).status == 0);
}

TEST_CASE("a lock that is not released is waited for as long as the limit, and the file stays",
          "[sharing]") {
  constexpr std::chrono::milliseconds limit{20};
  const meeting_place place;
  const io::descriptor other = place.open_folder();
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  const auto began = std::chrono::steady_clock::now();
  remove_socket(place.start, limit);
  CHECK(std::chrono::steady_clock::now() - began >= limit);
  CHECK(place.has_socket());  // it may be another's
}

TEST_CASE("what inherits the folder does not inherit its lock", "[sharing]") {
  const meeting_place place;
  const folder_lock lock(place.start.folder.get());
  REQUIRE(lock.is_held());
  CHECK(::flock(place.start.folder.get(), LOCK_UN) == 0);
  CHECK(::flock(place.open_folder().get(), LOCK_EX | LOCK_NB) == -1);
}

TEST_CASE("a process that is not there, or another one with its number, is no daemon",
          "[sharing]") {
  const auto own = static_cast<std::uint64_t>(::getpid());
  CHECK_FALSE(io::open_process(io::process_identity{}).is_open());
  CHECK_FALSE(io::open_process(io::process_identity{own, io::start_of(own) + 1}).is_open());
}

}  // namespace kclxx::sharing
