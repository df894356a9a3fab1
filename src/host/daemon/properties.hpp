// SPDX-License-Identifier: Apache-2.0
// Java .properties files, read as java.util.Properties reads them, and the daemon's keys.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "host/daemon/jars.hpp"

namespace kclxx::host {

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

/// All keys in the file's order; a key that is there twice comes twice. The bytes are ISO-8859-1,
/// as Java has it. Errors: properties_error for a \u that four hexadecimal digits do not follow.
properties parse_properties(std::string_view text);

/// A file, in ASCII, from which Java reads the same keys and values.
std::string write_properties(const properties& entries);

/// A key that a daemon has.
struct property_row {
  enum class version { kcl2, kcl3, both, newer };

  std::string_view key;
  version which;
  std::string_view default_value;  ///< empty: there is none, or it depends

  [[nodiscard]] bool is_in(kcl_version kcl) const noexcept {
    if (which == version::newer) return false;
    return which == version::both || (which == version::kcl2) == (kcl == kcl_version::kcl2);
  }
};

std::span<const property_row> property_table();

/// The row's key that this version takes `key` for: 3.x does not mind the case of
/// AwsCredentialsProvider.
std::string canonical_key(std::string_view key, kcl_version kcl);

/// The row of a key. nullptr: this version has none.
const property_row* find_row(std::string_view key, kcl_version kcl);

/// Whether only daemons that are newer than the tested ones have the key.
bool is_of_newer_daemons(std::string_view key);

/// Whether this version reads the key: it has a row, or is a property of the AWS SDK's client
/// builder (kinesisClient.region and the like).
bool is_known(std::string_view key, kcl_version kcl);

/// The property that this version takes for `key`, in whatever spelling it accepts: the last one
/// counts. nullptr: it is not there.
const property* find(const properties& entries, std::string_view key, kcl_version kcl);

/// Its value without blanks around it; empty also when it is not there.
std::string value_of(const properties& entries, std::string_view key, kcl_version kcl);

/// The keys in the environment, "KCLXX_PROPERTY_applicationName=...", sorted; two underscores are a
/// dot.
/// Errors: properties_error for a variable that names no key.
properties overrides_in(const std::vector<std::string>& environment);

/// The file's keys with those of the environment in their place; an empty value removes a key.
/// A key that the daemon does not know stays, so that `check` can name it.
properties with_overrides(properties entries, const properties& overrides, kcl_version kcl);

}  // namespace kclxx::host
