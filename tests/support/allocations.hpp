// SPDX-License-Identifier: Apache-2.0
// Allocations that are counted or fail. One source of a program includes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace kclxx::test {

/// Called for each allocation of the program, on its thread: true when it fails. It may not
/// allocate.
inline std::atomic<bool (*)(std::size_t size)> does_allocation_fail{
    [](std::size_t) { return false; }};

}  // namespace kclxx::test

// All forms but the aligned ones: a sanitizer's own would not call these.
namespace {

void* allocated(std::size_t size) noexcept {
  return kclxx::test::does_allocation_fail.load()(size) ? nullptr
                                                        : std::malloc(size > 0 ? size : 1);
}
void* allocated_or_throw(std::size_t size) {
  void* const memory = allocated(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocated_or_throw(size); }
void* operator new[](std::size_t size) { return allocated_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocated(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocated(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
