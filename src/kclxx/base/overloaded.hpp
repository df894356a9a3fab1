// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx {

/// A visitor of a variant, made of a lambda for each alternative.
template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // clang 14 does not deduce it

}  // namespace kclxx
