// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx {

/// One visitor out of a lambda for each alternative of a variant: messages, and what is made of
/// them.
template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // clang 14 does not deduce it

}  // namespace kclxx
