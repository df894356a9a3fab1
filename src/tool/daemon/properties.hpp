// SPDX-License-Identifier: Apache-2.0
// Java .properties files, read as java.util.Properties reads them.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::tool {

/// One key of a properties file, in UTF-8.
struct property {
  std::string key;
  std::string value;
  std::size_t line = 0;  ///< where it begins, from 1; 0: it comes from `origin`
  std::string origin;    ///< what to call its place when that is not a line of the file

  bool operator==(const property&) const = default;
};

using properties = std::vector<property>;

/// Text that is not a properties file; line 0: it is not of a file.
class properties_error : public std::runtime_error {
 public:
  properties_error(std::size_t line, const std::string& problem)
      : std::runtime_error(problem), line_(line) {}
  [[nodiscard]] std::size_t line() const noexcept { return line_; }

 private:
  std::size_t line_;
};

/// All keys in the file's order; of a key that is there twice, both. The bytes are ISO-8859-1, as
/// Java has it.
/// Errors: properties_error for a \u that four hexadecimal digits do not follow.
properties parse_properties(std::string_view text);

/// A file, in ASCII, from which Java reads the same keys and values.
std::string write_properties(const properties& all);

/// What the daemon gets for a key: the last one counts. nullptr: it is not there.
const property* find(const properties& all, std::string_view key);

}  // namespace kclxx::tool
