// SPDX-License-Identifier: Apache-2.0
// What an exception of user code means.
#pragma once

#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include <kclxx/error.hpp>

namespace kclxx::detail {

/// The text of an exception, for logs and parked lines; the first 4096 bytes of it. A null pointer
/// is what catch (...) has of one that is not of C++.
inline std::string message_of(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    const char* const text = error.what();
    return text == nullptr ? "a std::exception without a text"
                           : std::string(text, ::strnlen(text, 4096));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the text below
  }
  return "an exception that is not a std::exception";
}

/// Whether it is a std::system_error of a lost lease: a checkpoint_error, or a fenced_error.
inline bool is_lease_gone(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    return error.code() == checkpoint_condition::lease_gone;
  } catch (...) {  // NOLINT(bugprone-empty-catch): any other
  }
  return false;
}

}  // namespace kclxx::detail
