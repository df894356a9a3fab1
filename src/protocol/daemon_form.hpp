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

/// Reads line[0, length) as far as it has the daemon's form, appends the records, and decodes their
/// data in place. What it does not read it does not change, and what it reads means the same to
/// the decoder. Behind the line must be 64 bytes of zeros.
daemon_form read_daemon_form(char* line, std::size_t length, std::vector<record>& records);

}  // namespace kclxx::protocol
