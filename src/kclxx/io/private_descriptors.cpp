// SPDX-License-Identifier: Apache-2.0
#include "io/private_descriptors.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kclxx::io {

namespace {

std::atomic<unsigned> forks = 0;

/// Not destroyed: a fork may come during exit.
struct registry {
  std::mutex mutex;  // locked during a fork, so that the copy finds the list whole
  std::vector<int> descriptors;
};

registry& all() {
  static auto* const all = new registry;
  return *all;
}

void before_fork() noexcept { all().mutex.lock(); }
void after_fork_in_parent() noexcept { all().mutex.unlock(); }
void after_fork_in_child() noexcept {
  ++forks;
  for (const int fd : all().descriptors) ::close(fd);
  all().descriptors.clear();
  all().mutex.unlock();
}

void watch_forks() noexcept {
  static const int watched =
      ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(watched);
}

}  // namespace

fork_block::fork_block() {
  watch_forks();
  all().mutex.lock();
}

fork_block::~fork_block() { all().mutex.unlock(); }

void fork_block::keep_private(std::initializer_list<int> fds) {
  all().descriptors.insert(all().descriptors.end(), fds);
}

void keep_private(int fd) { fork_block().keep_private({fd}); }

void close_private(int fd) noexcept {
  const std::lock_guard lock(all().mutex);
  auto& descriptors = all().descriptors;
  const auto found = std::find(descriptors.begin(), descriptors.end(), fd);
  if (found != descriptors.end()) descriptors.erase(found);
  ::close(fd);
}

private_descriptor::private_descriptor(descriptor&& fd) : fd_(std::move(fd)) {
  io::keep_private(fd_.get());
}

private_descriptor::private_descriptor(int original) {
  fork_block block;
  fd_ = descriptor(::fcntl(original, F_DUPFD_CLOEXEC, 3));
  if (!fd_.is_open()) throw std::system_error(errno, std::generic_category(), "a descriptor");
  block.keep_private({fd_.get()});
}

void private_descriptor::close() noexcept {
  if (fd_.is_open()) close_private(fd_.release());
}

const std::atomic<unsigned>& fork_count() noexcept {
  watch_forks();
  return forks;
}

}  // namespace kclxx::io
