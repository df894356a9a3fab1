// SPDX-License-Identifier: Apache-2.0
// Each case runs in a forked copy: descriptors 1 and 2 belong to the process.
#include <array>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include "sharing/handed_shard.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"

namespace kclxx::sharing {

namespace {

/// The stderr of a shard.
class error_pipe : public test::open_pipe {
 public:
  error_pipe() {
    // The other end waits for a reader, as a shard's does.
    ::fcntl(read_end(), F_SETFL, O_NONBLOCK);
  }
  std::string text() {
    std::array<char, 256> bytes{};
    const ssize_t n = ::read(read_end(), bytes.data(), bytes.size());
    return {bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }
  void fill() {
    const int flags = ::fcntl(write_end(), F_GETFL);
    ::fcntl(write_end(), F_SETFL, flags | O_NONBLOCK);
    while (::write(write_end(), "x", 1) == 1) continue;
    ::fcntl(write_end(), F_SETFL, flags);
  }
  /// Whether nobody has the write end any more.
  bool has_ended() {
    close_write_end();
    char byte = 0;
    return ::read(read_end(), &byte, 1) == 0;
  }
};

std::string file_at(int fd) {
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("a shard ends though its stderr is full, and half a line is not printed yet",
          "[sharing]") {
  CHECK(test::in_forked_copy([] {
          ::alarm(60);  // ends it when it waits
          process_output output;
          error_pipe first;
          output.add(first.write_end());
          std::fputs("no newline", stdout);
          first.fill();
          output.remove(first.write_end());
          return file_at(STDOUT_FILENO) == "/dev/null" ? 0 : 1;
        }).status == 0);
}

TEST_CASE("without a shard the descriptors lead to /dev/null, which costs no more of them",
          "[sharing]") {
  CHECK(test::in_forked_copy([] {
          process_output output;
          const auto before = test::count_of("/proc/self/fd");
          output.no_shard_comes();
          const bool is_null =
              file_at(STDOUT_FILENO) == "/dev/null" && file_at(STDERR_FILENO) == "/dev/null";
          return is_null && test::count_of("/proc/self/fd") == before ? 0 : 1;
        }).status == 0);
}

TEST_CASE(
    "without a free descriptor a shard is not held open, and no file gets the numbers 1 and 2",
    "[sharing]") {
  CHECK(test::in_forked_copy([] {
          process_output output;
          error_pipe first;
          error_pipe second;
          output.add(first.write_end());
          rlimit before{};
          ::getrlimit(RLIMIT_NOFILE, &before);
          const rlimit none{3, before.rlim_max};  // 0, 1 and 2 are open
          ::setrlimit(RLIMIT_NOFILE, &none);
          output.remove(first.write_end());
          ::setrlimit(RLIMIT_NOFILE, &before);
          if (!first.has_ended()) return 1;
          if (file_at(STDOUT_FILENO) != "/dev/null" || file_at(STDERR_FILENO) != "/dev/null")
            return 2;
          if (::dup(STDIN_FILENO) <= STDERR_FILENO) return 3;
          output.add(second.write_end());
          print("seen\n");
          return second.text() == "seen\n" ? 0 : 4;
        }).status == 0);
}

TEST_CASE("of the three standard descriptors none is free, though main has closed them",
          "[sharing]") {
  CHECK(test::in_forked_copy([] {
          for (const int standard : {0, 1, 2}) ::close(standard);
          process_output output;
          if (::open("/", O_RDONLY) <= STDERR_FILENO) return 1;
          error_pipe first;
          output.add(first.write_end());
          output.remove(first.write_end());
          return first.has_ended() ? 0 : 2;
        }).status == 0);
}

TEST_CASE("a starter that is gone is not held open", "[sharing]") {
  const auto result = test::in_forked_copy([] {
    error_pipe starter;
    ::dup2(starter.write_end(), STDERR_FILENO);
    ::dup2(starter.write_end(), STDOUT_FILENO);
    process_output output;
    output.no_shard_comes();
    print("lost\n");
    return starter.has_ended() ? 0 : 1;
  });
  CHECK(result.status == 0);
}

}  // namespace kclxx::sharing
