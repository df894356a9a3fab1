// SPDX-License-Identifier: Apache-2.0
// How the library is compiled: a program that is compiled otherwise refers to other names.
#include <kclxx/detail/export.hpp>

namespace kclxx::detail {

constexpr char KCLXX_DETAIL_CONTAINERS = 0;
constexpr char KCLXX_DETAIL_STRINGS = 0;

}  // namespace kclxx::detail
