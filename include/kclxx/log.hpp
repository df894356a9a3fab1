// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kclxx/detail/export.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// How serious a message is, in ascending order.
enum class log_level {
  info,     ///< nothing needs to be done
  warning,  ///< something is not as it should be; the session continues
  /// The session ends or cannot begin, a checkpoint failed for good, a record is skipped or cannot
  /// be parked, a circuit opened, or the worker cannot be asked to stop.
  error,
};

/// One message of the library.
struct log_entry {
  log_level level;
  std::string shard_id;  ///< empty before initialize
  /// One line, without a newline. What a terminal could obey, and bytes that are not UTF-8, are
  /// escaped as in C; it is cut at 8 KiB.
  std::string text;
  std::optional<sequence_position> position{};  ///< the record or checkpoint that it is about
  bool operator==(const log_entry&) const = default;
};

/// Which messages are written, how and where. The environment takes precedence:
/// KCLXX_LOG=warning,json sets the level and the form, json or text (either may be left out);
/// KCLXX_LOG_FILE sets the file.
/// Thread safety: a value; `run`, `serve` and log_writer copy it.
struct log_options {
  log_level level = log_level::info;  ///< messages below this level are dropped
  /// False: a line is "kclxx shardId-000000000003 warning: ..."; in a file the date precedes it.
  /// True: one object in a line, with time, level, shard, position and message.
  bool json = false;
  /// A file that lines are appended to. It is opened for each line, so it can be rotated. Empty:
  /// stderr.
  std::string file{};
};

/// Writes messages as the options demand. `run` uses it if run_options::log is empty. A log
/// function may call it, too:
///
///     options.log = [write = kclxx::log_writer()](const kclxx::log_entry& entry) {
///       count(entry);
///       write(entry);
///     };
///
/// Thread safety: copies may be called at the same time; lines are not mixed.
class KCLXX_EXPORT log_writer {
 public:
  /// Reads the environment. Ignores wrong values in it; `run` reports them. No file is
  /// opened yet. `descriptor` is used in place of stderr.
  /// Lifetime: the descriptor stays the caller's; it must be open while a copy is in use.
  explicit log_writer(const log_options& options = {}, int descriptor = 2);
  /// What is below the level is dropped. A line that cannot be written to the file goes to stderr;
  /// the first time, a line before it gives the reason.
  /// Errors: none; a line that can be written nowhere is dropped.
  /// Blocking: until the file or the descriptor has taken the line. A full pipe that nobody reads
  /// blocks it indefinitely.
  void operator()(const log_entry& entry) const noexcept;

 private:
  class state;
  std::shared_ptr<const state> state_;
};

}  // namespace kclxx
