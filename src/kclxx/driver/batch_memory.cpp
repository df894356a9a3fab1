// SPDX-License-Identifier: Apache-2.0
#include "driver/batch_memory.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <utility>

namespace kclxx::driver {

namespace {

// glibc raises its mmap threshold to the largest block that was freed, so that the next large
// vector of records comes from the heap, where a small block after it would pin it. Lines have
// memory of their own.
void return_to_system() noexcept {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace

struct batch_memory_pool::state {
  // One is with the processor while the next line arrives in the reader's own buffer.
  static constexpr std::size_t kept = 2;

  void give_back(std::unique_ptr<batch_memory> memory) noexcept {
    bool is_dropped = false;
    {
      const std::lock_guard lock(mutex);
      is_dropped = drops_large && memory->is_large();
      if (!is_dropped && count < kept) spare[count++] = std::move(memory);
    }
    memory.reset();
    if (is_dropped) return_to_system();
  }

  std::mutex mutex;
  std::unique_ptr<batch_memory> spare[kept];
  std::size_t count = 0;
  bool drops_large = true;
};

batch_memory_pool::batch_memory_pool() : state_(std::make_shared<state>()) {}

std::shared_ptr<batch_memory> batch_memory_pool::take() {
  std::unique_ptr<batch_memory> memory;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->count > 0) memory = std::move(state_->spare[--state_->count]);
  }
  if (!memory) memory = std::make_unique<batch_memory>();
  return {memory.release(), [pool = state_](batch_memory* lent) {
            pool->give_back(std::unique_ptr<batch_memory>(lent));
          }};
}

void batch_memory_pool::lend_line(io::line_reader& reader) {
  const std::lock_guard lock(state_->mutex);
  for (std::size_t i = 0; i < state_->count; ++i) reader.lend(state_->spare[i]->line);
}

void batch_memory_pool::keep_large() {
  const std::lock_guard lock(state_->mutex);
  state_->drops_large = false;
}

void batch_memory_pool::release_large() {
  std::unique_ptr<batch_memory> dropped[state::kept];
  {
    const std::lock_guard lock(state_->mutex);
    state_->drops_large = true;
    auto& spare = state_->spare;
    const auto first = std::partition(spare, spare + state_->count,
                                      [](const auto& memory) { return !memory->is_large(); });
    std::move(first, spare + state_->count, dropped);
    state_->count = static_cast<std::size_t>(first - spare);
  }
  for (auto& memory : dropped) memory.reset();
  return_to_system();
}

}  // namespace kclxx::driver
