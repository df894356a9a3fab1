// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <optional>
#include <string>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// How serious a message is, in ascending order.
enum class log_level {
  info,     ///< nothing needs to be done
  warning,  ///< something is not as it should be; the session continues
  /// The session ends or cannot begin, a checkpoint failed for good, a record is skipped or cannot
  /// be parked, records may have been lost (run_options::retention), a circuit opened, or the
  /// worker cannot be asked to stop.
  error,
};

/// One message of the library.
struct log_entry {
  /// How serious the message is.
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
/// What cannot be written to the file goes to stderr; the first time, a line before it gives the
/// reason.
/// Thread safety: a value; `run` and `serve` copy it.
struct log_options {
  log_level level = log_level::info;  ///< messages below this level are dropped
  /// False: a line is "kclxx shardId-000000000003 warning: ..."; in a file the date precedes it.
  /// True: one object in a line, with time, level, shard, position and message.
  bool json = false;
  /// A file that lines are appended to. It is opened for each line, so it can be rotated. Empty:
  /// stderr.
  std::string file{};
};

}  // namespace kclxx
