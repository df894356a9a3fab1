// SPDX-License-Identifier: Apache-2.0
#include "share/wait.hpp"

#include <cerrno>
#include <cstdint>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "sharing/hand_over.hpp"

#ifdef KCLXX_SHARE_IS_STATIC
extern "C" const char __ehdr_start[];  // NOLINT: the linker's, where the program begins in memory
#endif

namespace kclxx::share {

namespace {

#ifdef KCLXX_SHARE_IS_STATIC

constexpr std::uintptr_t most_stack = 128 << 10;
/// The C library keeps the thread's structure, 2.3 KiB in glibc 2.36, after errno. The kernel
/// writes into it.
constexpr std::uintptr_t thread_structure = 3 << 10;

/// The pages that lie in it as a whole, or in part. Looked at again, they are what the program file
/// has there, or zero.
void give_back(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t page) {
  begin &= ~(page - 1);
  ::syscall(SYS_madvise, begin, end - begin, MADV_DONTNEED);
}

/// What the program has written to: its variables, the heap, and the stack below this call.
[[gnu::noinline]] void give_back_memory() {
  const std::uintptr_t page = ::getauxval(AT_PAGESZ);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR));
  const std::uintptr_t count = ::getauxval(AT_PHNUM);
  const auto heap_end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  const auto used_heap = reinterpret_cast<std::uintptr_t>(&errno) + thread_structure + page - 1;
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (used_heap < heap_end) give_back(used_heap, heap_end, page);
  // The next page may be this call's, too.
  give_back(frame - most_stack, (frame & ~(page - 1)) - page, page);
  std::uintptr_t base = 0;
  for (std::uintptr_t i = count; i-- > 0;) {
    if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0) {
      base = reinterpret_cast<std::uintptr_t>(__ehdr_start) - headers[i].p_vaddr;
    }
  }
  for (std::uintptr_t i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_LOAD || (headers[i].p_flags & PF_W) == 0) continue;
    const std::uintptr_t begin = base + headers[i].p_vaddr;
    give_back(begin, begin + headers[i].p_memsz, page);
  }
}

#else

void give_back_memory() {}

#endif

}  // namespace

void wait_for_end(int connection, const char* const* arguments, char** environment) {
  sharing::reply_message reply;
  give_back_memory();
  // From here on system calls alone: the C library has lost its state.
  long size = -1;
  do {
    size = ::syscall(SYS_read, connection, &reply, sizeof reply);
    // A reset comes before what was received until then.
  } while (size == -1 && (errno == EINTR || errno == ECONNRESET));
  if (size == sizeof reply && reply.header.kind == sharing::message_kind::ended) {
    ::syscall(SYS_exit_group, reply.status);
  }
  ::syscall(SYS_execve, "/proc/self/exe", arguments, environment);
  ::syscall(SYS_exit_group, static_cast<int>(exit_status::resident_gone));
  __builtin_unreachable();
}

}  // namespace kclxx::share
