// SPDX-License-Identifier: Apache-2.0
#include "io/line_buffer.hpp"

#include <cstring>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace kclxx::io {

namespace {

// ThreadSanitizer does not see mremap, and takes the memory's earlier use by another thread for a
// race.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KCLXX_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define KCLXX_THREAD_SANITIZER
#endif

void* map_memory(std::size_t size) noexcept {
  return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

line_buffer::line_buffer(line_buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

line_buffer& line_buffer::operator=(line_buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

line_buffer::~line_buffer() { release(); }

void line_buffer::grow(std::size_t capacity) {
  if (capacity <= capacity_) return;
  const std::size_t size = capacity + padding;
  if (size < capacity) throw std::bad_alloc();
#if defined(MREMAP_MAYMOVE) && !defined(KCLXX_THREAD_SANITIZER)
  void* grown = data_ == nullptr ? map_memory(size)
                                 : ::mremap(data_, capacity_ + padding, size, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) throw std::bad_alloc();
#else
  void* grown = map_memory(size);
  if (grown == MAP_FAILED) throw std::bad_alloc();
  if (capacity_ > 0) std::memcpy(grown, data_, capacity_);
  release();
#endif
  data_ = static_cast<char*>(grown);
  capacity_ = capacity;
}

void line_buffer::release() noexcept {
  if (data_ != nullptr) ::munmap(data_, capacity_ + padding);
  data_ = nullptr;
  capacity_ = 0;
}

}  // namespace kclxx::io
