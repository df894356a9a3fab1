// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <kclxx/sequence_position.hpp>

#include "protocol/decimal.hpp"

namespace kclxx::protocol {

/// A text of a memory block that moved from `old_line` to `new_line`.
inline std::string_view rebased(std::string_view text, const char* old_line, const char* new_line) {
  return {new_line + (text.data() - old_line), text.size()};
}

/// The highest position among records. It keeps views of the texts: a position is made once in a
/// batch, not for each record.
class highest_position {
 public:
  void take(std::string_view sequence_number, std::uint64_t sub_sequence_number) noexcept {
    const int order = compare_digits(sequence_number, sequence_number_);
    if (order > 0 || sequence_number_.empty() ||
        (order == 0 && sub_sequence_number > sub_sequence_number_)) {
      sequence_number_ = sequence_number;
      sub_sequence_number_ = sub_sequence_number;
    }
  }

  /// std::nullopt when nothing was taken.
  [[nodiscard]] std::optional<sequence_position> get() const {
    if (sequence_number_.empty()) return std::nullopt;
    return sequence_position(sequence_number_, sub_sequence_number_);
  }

  /// The texts moved with their memory, from `old_line` to `new_line`.
  void rebase(const char* old_line, const char* new_line) noexcept {
    if (!sequence_number_.empty()) sequence_number_ = rebased(sequence_number_, old_line, new_line);
  }

 private:
  std::string_view sequence_number_;
  std::uint64_t sub_sequence_number_ = 0;
};

}  // namespace kclxx::protocol
