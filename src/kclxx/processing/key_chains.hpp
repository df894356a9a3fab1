// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// The records of each partition key, in the order of arrival. The first of a key may be processed,
/// the others wait for it. Records without a key are one key.
///
/// A hash table of the first record of each key, and a ring with the links between the records: no
/// memory is allocated for a record or a key.
///
/// Thread safety: none.
class key_chains {
 public:
  /// `window` is asked for the records; it must have those that are in a chain.
  explicit key_chains(const completion_window& window) : window_(window) {}

  /// Adds a record, in the order of arrival. True when it is the first of its key.
  bool push(arrival which);
  /// Removes the first record of its key. Returns the one that is first now, if there is one.
  std::optional<arrival> pop(arrival which);

 private:
  static constexpr arrival none = ~arrival{0};
  struct link {
    arrival next = none;
    arrival last = none;  // of the first record of a key: the last one
    std::uint64_t hash = 0;
  };

  [[nodiscard]] link& link_of(arrival which) noexcept { return links_[which % links_.size()]; }
  [[nodiscard]] std::size_t place_of(std::uint64_t hash,
                                     std::optional<std::string_view> key) noexcept;
  [[nodiscard]] std::size_t after(std::size_t place) const noexcept {
    return (place + 1) % firsts_.size();
  }
  void erase(std::size_t place) noexcept;
  void grow(std::size_t records);

  const completion_window& window_;
  // Both have a power of two as their size, the table twice that of the ring.
  std::vector<link> links_ = std::vector<link>(64);
  std::vector<arrival> firsts_ = std::vector<arrival>(128, none);
};

}  // namespace kclxx::processing
