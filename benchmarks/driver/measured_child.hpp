// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace bench {

/// A running client, with pipes at its stdin and stdout and its stderr in a file in memory.
/// Errors: std::system_error; std::runtime_error when the child does not behave.
class measured_child {
 public:
  /// `cpu`: the CPU to which it is pinned; std::nullopt: it runs where this process may.
  measured_child(const std::vector<std::string>& command, std::optional<int> cpu);
  measured_child(const measured_child&) = delete;
  measured_child& operator=(const measured_child&) = delete;
  /// Ends the child by force if it was not waited for.
  ~measured_child();

  /// From now on each write waits until the child has read all of it.
  void wait_for_reads() { waits_for_reads_ = true; }

  /// Waits until all its threads have slept for a while.
  void wait_until_idle() const;

  /// Writes 8 KiB at a time, as the real daemon does.
  void write(std::string_view text);

  /// The next line that is not empty, without its newline.
  /// Lifetime: the view ends with the next call.
  std::string_view read_line();

  /// Its process, and the running processes that it has started, such as the resident of
  /// kclxx-share.
  [[nodiscard]] std::vector<pid_t> processes() const;

  /// User and system time of all threads of its processes, in seconds.
  [[nodiscard]] double cpu_seconds() const;

  /// The memory of its processes, in bytes. `field` is VmRSS (now), RssAnon (the part of it that no
  /// file backs) or VmHWM (the most so far). ru_maxrss would begin with the size of the process
  /// that has started the child.
  [[nodiscard]] std::size_t memory(std::string_view field) const;

  // The threads and descriptors of all its processes.
  [[nodiscard]] std::size_t threads() const;
  [[nodiscard]] std::size_t descriptors() const;

  struct ending {
    int status;    ///< -1 when a signal ended it
    rusage usage;  ///< what it has used in its whole life
    std::string errors;
  };
  /// Closes its input and waits for its end.
  ending wait();

 private:
  void wait_until_read();
  [[nodiscard]] std::size_t entries(const char* folder) const;
  [[noreturn]] void fail(const std::string& what);

  pid_t pid_ = -1;
  int in_ = -1;   ///< the pipe to its stdin
  int out_ = -1;  ///< the pipe from its stdout
  int err_ = -1;  ///< the file that is its stderr
  bool waits_for_reads_ = false;
  std::string received_;
  std::size_t line_begin_ = 0;
};

/// Pins this process, and what it starts from now on, to `cpu`.
void pin(int cpu);

}  // namespace bench
