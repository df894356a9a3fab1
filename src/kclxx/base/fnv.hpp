// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace kclxx::detail {

/// FNV-1a. Each run has the same hashes. It is no defence against somebody who chooses the values.
class fnv_hash {
 public:
  explicit fnv_hash(std::uint64_t seed = 0) : value_(seed ^ 0xcbf29ce484222325U) {}

  void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001b3U; }
  void add(std::string_view text) {
    for (const char c : text) add(std::uint64_t{static_cast<unsigned char>(c)});
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace kclxx::detail
