// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace kclxx::detail {

/// Checks what holds unless kclxx itself is wrong, in release builds, too: a child that ends loses
/// nothing, but a position that is persisted too early loses records. Errors: std::logic_error,
/// which ends the process.
inline void require_invariant(bool holds, const char* rule) {
  if (holds) [[likely]]
    return;
  throw std::logic_error(std::string("kclxx has detected a bug in itself, please report it: ") +
                         rule);
}

}  // namespace kclxx::detail
