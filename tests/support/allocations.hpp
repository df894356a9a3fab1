// SPDX-License-Identifier: Apache-2.0
// Lets a test count allocations, and let them fail. Only one source of a program may include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace kclxx::test {

/// Is called for each allocation of the program, on its thread, and must not allocate. If it
/// returns true, the allocation fails.
inline std::atomic<bool (*)(std::size_t size)> does_allocation_fail{
    [](std::size_t) { return false; }};

/// How many bytes the program has allocated and not freed.
inline std::atomic<std::size_t> bytes_in_use = 0;

}  // namespace kclxx::test

// The aligned forms are left out: those of a sanitizer would not call these functions.
namespace {

void* allocated(std::size_t size) noexcept {
  if (kclxx::test::does_allocation_fail.load()(size)) return nullptr;
  void* const memory = std::malloc(size > 0 ? size : 1);
  kclxx::test::bytes_in_use += ::malloc_usable_size(memory);
  return memory;
}
void* allocated_or_throw(std::size_t size) {
  void* const memory = allocated(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void release(void* memory) noexcept {
  kclxx::test::bytes_in_use -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return allocated_or_throw(size); }
void* operator new[](std::size_t size) { return allocated_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocated(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocated(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
