// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>

#include "protocol/fast_batch_parser.hpp"
#include "protocol/message.hpp"

namespace kclxx::protocol {

/// Why a line could not be understood.
struct decode_error {
  std::string problem;  ///< one clear phrase: "is not base64 at character 17"
  std::string field;    ///< "records[3].data"; empty when it is about the line as a whole
};

inline constexpr std::string_view white_space = " \t\r\n";

/// Whether a line has nothing but white space. The daemon writes no such line; it is skipped.
inline bool is_blank(std::string_view line) noexcept {
  return line.find_first_not_of(white_space) == std::string_view::npos;
}

/// Turns lines from the daemon into messages: the only place that reads JSON from the wire.
///
/// Thread safety: none; one decoder per reader.
class decoder {
 public:
  /// This many bytes after the end of a line must be readable and writable, with any values.
  static constexpr std::size_t padding = 64;

  /// Reads what it can, in place, of a line of which `line[0, size)` has arrived. When the line is
  /// whole, it must be the next line for `decode`, at any address, with the same `records` and
  /// `arena`.
  void read_ahead(char* line, std::size_t size, std::vector<record>& records,
                  std::deque<std::string>& arena);

  /// Decodes `line[0, length)` (without its newline) in place: the views of `records` point into
  /// the line, or into `arena` if the line is not UTF-8. For processRecords `records` is
  /// replaced (its capacity kept), else left empty.
  ///
  /// `replaced_invalid_utf8` is set when bytes that are not UTF-8, or the escape of half a
  /// surrogate pair, were replaced by U+FFFD.
  std::variant<message, decode_error> decode(char* line, std::size_t length,
                                             std::vector<record>& records,
                                             std::deque<std::string>& arena,
                                             bool& replaced_invalid_utf8);

 private:
  message decode_json(char* line, std::size_t length, std::vector<record>& records,
                      const highest_position& known, std::deque<std::string>& arena,
                      bool& replaced_invalid_utf8);

  fast_batch_parser batch_;
  bool is_ahead_ = false;  // read_ahead has read some of the line that decode gets next
};

}  // namespace kclxx::protocol
