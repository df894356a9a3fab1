// SPDX-License-Identifier: Apache-2.0
#include "io/private_descriptors.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <unistd.h>
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
  static auto* const one = new registry;
  return *one;
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

void forget_private(int fd) noexcept {
  const std::lock_guard lock(all().mutex);
  auto& descriptors = all().descriptors;
  const auto found = std::find(descriptors.begin(), descriptors.end(), fd);
  if (found != descriptors.end()) descriptors.erase(found);
}

unsigned fork_count() noexcept {
  watch_forks();
  return forks.load(std::memory_order_relaxed);
}

}  // namespace kclxx::io
