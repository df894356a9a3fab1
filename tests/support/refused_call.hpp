// SPDX-License-Identifier: Apache-2.0
// Lets a system call fail, as on an old kernel or under a seccomp profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <optional>
#include <stdexcept>
#include <sys/prctl.h>
#include <vector>

namespace kclxx::test {

/// From now on the system call fails with the error, in this process and in all that it starts or
/// becomes, so it is for forked copies. `second_argument`: only a call with this argument fails.
/// Errors: std::runtime_error when the system has no filters.
inline void refuse_call(long number, int error,
                        std::optional<std::uint32_t> second_argument = std::nullopt) {
  const auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  const auto allow_unless = [](std::uint32_t value, std::uint8_t instructions_to_skip) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, instructions_to_skip, value};
  };
  std::vector<sock_filter> program{load(offsetof(seccomp_data, nr))};
  program.push_back(allow_unless(static_cast<std::uint32_t>(number), second_argument ? 3 : 1));
  if (second_argument) {
    program.push_back(load(offsetof(seccomp_data, args) + sizeof(std::uint64_t)));
    program.push_back(allow_unless(*second_argument, 1));
  }
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)});
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == -1) {
    throw std::runtime_error("this system has no seccomp filters");
  }
}

}  // namespace kclxx::test
