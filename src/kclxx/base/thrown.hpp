// SPDX-License-Identifier: Apache-2.0
// What an exception of user code means.
#pragma once

#include <exception>
#include <string>
#include <system_error>

#include <kclxx/error.hpp>

namespace kclxx::detail {

/// The text of an exception, for logs and parked lines.
inline std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

/// Whether it is the checkpoint_error of a lost lease, or a fenced_error.
inline bool is_lease_gone(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    return error.code() == checkpoint_condition::lease_gone;
  } catch (...) {
    return false;
  }
}

}  // namespace kclxx::detail
