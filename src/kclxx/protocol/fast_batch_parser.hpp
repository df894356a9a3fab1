// SPDX-License-Identifier: Apache-2.0
// The fast path for batches and for the answers to their checkpoints. The daemon writes them with
// the same fields in the same order and without white space: that can be read in one pass, at the
// speed of copying it.
// The decoder, which knows JSON, reads everything else.
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

/// A view of a text whose line has moved from the address `old_line`. The old memory may be
/// unmapped, so addresses in it are numbers: no pointer is computed from them.
inline std::string_view rebased(std::string_view text, std::uintptr_t old_line,
                                const char* new_line) {
  return {new_line + (reinterpret_cast<std::uintptr_t>(text.data()) - old_line), text.size()};
}

/// The highest position among records. It keeps views of the digits, so that a sequence_position is
/// made once for a batch instead of once for each record.
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

  /// To be called when the line has moved; see rebased().
  void rebase(std::uintptr_t old_line, const char* new_line) noexcept {
    if (!sequence_number_.empty()) sequence_number_ = rebased(sequence_number_, old_line, new_line);
  }

 private:
  std::string_view sequence_number_;
  std::uint64_t sub_sequence_number_ = 0;
};

/// Parses lines in the order of their arrival, each as far as it has the form that the daemon
/// writes. Appends the records of a line, and decodes their data in place. Unparsed input is
/// untouched; parsed input gives what the full decoder would.
///
/// A line may be parsed while it arrives: its records are then decoded while they are still in the
/// cache, and while the daemon writes further records.
/// Thread safety: none.
class fast_batch_parser {
 public:
  /// This many bytes must be readable after the bytes that are given.
  static constexpr std::size_t look_ahead = 64;

  /// How a batch begins.
  static constexpr std::string_view prologue = R"({"action":"processRecords","records":[)";

  struct result {
    bool is_whole = false;  ///< the whole line was parsed
    /// If it was not: the offset of the first unparsed byte, or 0 when nothing was parsed. The
    /// caller overwrites the bytes before it with the prologue, for which a parsed record has room,
    /// and hands the line from there on to the JSON parser.
    std::size_t unparsed_offset = 0;
    std::optional<std::chrono::milliseconds> millis_behind_latest;
    highest_position highest;
  };

  /// Parses what it can of a line of which line[0, size) has arrived; zeros follow it. May be
  /// called again when more bytes have arrived. The line may have moved meanwhile: `records` are
  /// rebased.
  void read_ahead(char* line, std::size_t size, std::vector<record>& records);

  /// Parses the line, of which line[0, length) is the whole; zeros follow it. `records` are what
  /// read_ahead has left there, or empty.
  result finish(char* line, std::size_t length, std::vector<record>& records);

 private:
  bool begin(char* line, std::size_t size, std::vector<record>& records);
  void take_records(std::size_t size, std::vector<record>& records);
  void rebase(char* line, std::vector<record>& records);

  enum class state { before_records, in_records, after_records, unparsable };

  state state_ = state::before_records;
  char* line_ = nullptr;
  std::size_t parsed_bytes_ = 0;           // up to the end of the last record that was parsed
  std::size_t scanned_bytes_of_data_ = 0;  // of the record after that; they have no closing quote
  highest_position highest_;
};

/// Reads line[0, length) if it is the answer to a checkpoint that succeeded; std::nullopt for any
/// further line. look_ahead zeros follow it.
std::optional<checkpoint_answer> parse_success(char* line, std::size_t length);

}  // namespace kclxx::protocol
