// SPDX-License-Identifier: Apache-2.0
// The fast path for batches and for the answers to their checkpoints. The daemon (Jackson) writes
// them with the same fields in the same order and without white space: that can be read in one
// pass, at the speed of copying it.
// Everything else is left to the decoder, which knows JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "protocol/decimal.hpp"
#include "protocol/message.hpp"

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

/// Parses one line after the other as far as it has the form that the daemon writes, appends its
/// records, and decodes their data in place. Unparsed input is untouched; parsed input gives what
/// the full decoder would.
///
/// A line may be parsed while it arrives: its records are then decoded while they are still in the
/// cache, and while the daemon writes the next ones.
/// Thread safety: none.
class fast_batch_parser {
 public:
  /// Bytes after what is given that must be there to be read.
  static constexpr std::size_t look_ahead = 64;

  /// How a batch begins.
  static constexpr std::string_view prologue = R"({"action":"processRecords","records":[)";

  struct result {
    bool is_whole = false;  ///< the whole line was parsed
    /// Otherwise the offset of the first unparsed byte. The caller overwrites the bytes before it
    /// with the prologue, for which a parsed record has room, and hands the rest to the JSON
    /// parser. 0 when nothing was parsed.
    std::size_t rest = 0;
    std::optional<std::chrono::milliseconds> millis_behind_latest;
    highest_position highest;
  };

  /// line[0, size) has arrived, and zeros follow it. May be called again with more, at another
  /// address too: what was parsed moved with the line, and `records` are rebased.
  void read_ahead(char* line, std::size_t size, std::vector<record>& records);

  /// line[0, length) is whole, and zeros follow it. `records` as read_ahead left them, or empty.
  result finish(char* line, std::size_t length, std::vector<record>& records);

 private:
  bool begin(char* line, std::size_t size, std::vector<record>& records);
  void take_records(std::size_t size, std::vector<record>& records);
  void rebase(char* line, std::vector<record>& records);

  enum class state { before_records, in_records, after_records, unparsable };

  state state_ = state::before_records;
  char* line_ = nullptr;
  std::size_t at_ = 0;       // after the last record that was parsed
  std::size_t scanned_ = 0;  // so much of the next record's data has no quote
  highest_position highest_;
};

/// line[0, length) as the answer to a checkpoint that succeeded, or nothing when it is anything
/// else. Zeros follow it, as many as look_ahead.
std::optional<checkpoint_answer> parse_success(char* line, std::size_t length);

}  // namespace kclxx::protocol
