// SPDX-License-Identifier: Apache-2.0
// The door for text that people read: in a log, on a terminal, in a report.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/error.hpp>
#include <kclxx/log.hpp>
#include <kclxx/observer.hpp>

namespace kclxx::detail {

/// The character at the beginning of a text that is not empty. If it is not UTF-8, `size` is the
/// length of the longest part that began well, at least 1: Unicode recommends to replace that part.
struct character {
  std::size_t size;
  bool is_utf8;
  char32_t code;
};
character first_character(std::string_view text) noexcept;

/// Whether a terminal or a program that reads logs could obey the character instead of showing it:
/// control characters (C0, DEL, C1), line and paragraph separators, marks for the direction of
/// text, the byte order mark.
bool is_obeyed(char32_t code) noexcept;

/// A backslash, u and four hexadecimal digits, as in C and in JSON.
std::string unicode_escape(char32_t code);

inline constexpr std::size_t longest_line = 8192;
inline constexpr std::size_t longest_name = 120;   // of an action, an error; a line's beginning
inline constexpr std::size_t longest_quote = 512;  // a partition key has up to 256 characters

/// Text from elsewhere in a single line. Characters that could be obeyed, and bytes that are not
/// UTF-8, are escaped as in C: \n, \x1b, \u202e. A longer result is cut to `max_bytes`, with the
/// text's length at its end. A text that was made printable once is not changed again.
std::string printable(std::string_view text, std::size_t max_bytes = longest_line);

/// A text in single quotes, which it cannot close: 'a\'b'.
std::string quoted(std::string_view text);

/// The simple names of the daemon's exceptions, in checkpoint_errc's order.
inline constexpr std::array<std::string_view, 5> exception_names{
    "ThrottlingException", "KinesisClientLibDependencyException", "ShutdownException",
    "InvalidStateException", "IllegalArgumentException"};

/// The names of record_processor's functions, in callback_kind's order.
inline constexpr std::array<std::string_view, 5> callback_names{
    "initialize", "process_records", "lease_lost", "shard_ended", "shutdown_requested"};

constexpr std::string_view callback_name(observer::callback_kind kind) noexcept {
  return callback_names[static_cast<std::size_t>(kind)];
}

/// The names of the levels, in log_level's order.
inline constexpr std::array<std::string_view, 3> level_names{"info", "warning", "error"};

constexpr std::string_view level_name(log_level level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

// What an exception of user code means.

/// The first 4096 bytes of an exception's text, for logs and parked lines. `thrown` is null for an
/// exception that is not of C++.
inline std::string message_of(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    const char* const text = text_of(error);
    return {text, ::strnlen(text, 4096)};
  } catch (...) {  // NOLINT(bugprone-empty-catch): the text below
  }
  return "an exception that is not a std::exception";
}

/// Whether the exception says that the lease is lost: a checkpoint_error or fenced_error with
/// lease_gone, or the process_ended of the test kit.
inline bool is_lease_gone(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    return error.code() == checkpoint_condition::lease_gone;
  } catch (const process_ended&) {
    return true;
  } catch (...) {  // NOLINT(bugprone-empty-catch): any other
  }
  return false;
}

}  // namespace kclxx::detail
