// SPDX-License-Identifier: Apache-2.0
// The form in which the daemon writes a batch: Jackson's, always the same fields in the same order
// and without white space. It can be read in one pass, at the speed of copying it. Everything else
// is left to the decoder, which knows JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::protocol {

/// The highest position among records, as the texts they have.
class highest_position {
 public:
  void take(std::string_view sequence_number, std::uint64_t sub_sequence_number) noexcept;
  /// std::nullopt when nothing was taken.
  [[nodiscard]] std::optional<sequence_position> get() const;
  /// The text that stood from `before` on stands from `now` on.
  void follow(const char* before, const char* now) noexcept;

 private:
  std::string_view sequence_number_;
  std::uint64_t sub_sequence_number_ = 0;
};

/// What read_daemon_form found.
struct daemon_form {
  /// How a batch begins.
  static constexpr std::string_view beginning = R"({"action":"processRecords","records":[)";

  bool is_whole = false;  ///< the line is read
  /// Otherwise: where what was not read begins. In front of it belongs `beginning`, for which
  /// there is room in what was read of the last record. 0 when nothing was read.
  std::size_t rest = 0;
  std::optional<std::chrono::milliseconds> millis_behind_latest;
  highest_position highest;
};

/// Reads one line after the other as far as it has the daemon's form, appends its records, and
/// decodes their data in place. What it does not read it does not change, and what it reads means
/// the same to the decoder.
///
/// A line may be read while it arrives: its records are then decoded while they are still in the
/// cache, and while the daemon writes the next ones.
/// Thread safety: none.
class daemon_form_reader {
 public:
  /// Bytes after what is given that must be readable.
  static constexpr std::size_t look_ahead = 64;

  /// line[0, size) has arrived, and zeros follow it. May be called again with more, at
  /// another address too: what was read moved with the line, and `records` follow it.
  void read_ahead(char* line, std::size_t size, std::vector<record>& records);

  /// line[0, length) is whole, and zeros follow it. `records` as read_ahead left them, or
  /// empty.
  daemon_form finish(char* line, std::size_t length, std::vector<record>& records);

 private:
  bool begin(char* line, std::size_t size, std::vector<record>& records);
  void take_records(std::size_t size, std::vector<record>& records);
  void follow(char* line, std::vector<record>& records);

  enum class state { before_records, in_records, behind_records, elsewhere };

  state state_ = state::before_records;
  char* line_ = nullptr;
  std::size_t at_ = 0;       // after the last record that was read
  std::size_t scanned_ = 0;  // so much of the next record's data has no quote
  highest_position highest_;
};

}  // namespace kclxx::protocol
