// SPDX-License-Identifier: Apache-2.0
#include "sharing/process_output.hpp"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "io/descriptor.hpp"
#include "io/stdio_guard.hpp"

namespace kclxx::sharing {

process_output::process_output() { io::buffer_stdout_by_line(); }

void process_output::add(int error_of_shard) {
  const std::lock_guard lock(mutex_);
  errors_.push_back(error_of_shard);
  if (errors_.size() == 1) lead();
}

void process_output::remove(int error_of_shard) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(errors_.begin(), errors_.end(), error_of_shard);
  if (found == errors_.end()) return;
  const bool is_oldest = found == errors_.begin();
  errors_.erase(found);
  if (is_oldest) lead();
}

void process_output::no_shard_comes() noexcept {
  const std::lock_guard lock(mutex_);
  if (errors_.empty()) lead();
}

void process_output::lead() const noexcept {
  // The rest of a line goes where its beginning went, unless a thread is stuck in a print.
  if (::ftrylockfile(stdout) == 0) {
    ::fflush_unlocked(stdout);
    ::funlockfile(stdout);
  }
  io::descriptor null;
  if (errors_.empty()) null = io::descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const int to = errors_.empty() ? null.get() : errors_.front();
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(to, standard) == -1) ::close(standard);
  }
}

}  // namespace kclxx::sharing
