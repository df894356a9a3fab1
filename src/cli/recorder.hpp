// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/transcript_file.hpp"
#include "transcript/entry.hpp"
#include "transcript/writer.hpp"

namespace kclxx::cli {

/// Writes the transcript of a running dialogue, on a thread of its own, so that a slow disk does
/// not hold the dialogue up. When something cannot be written it says so once on stderr and
/// records no more.
///
/// The file begins under a name without the shard and gets it with initialize.
/// Thread safety: all functions may be called from any thread.
class recorder {
 public:
  /// Complete lines, or an unfinished last one, of one side. `bytes` is kept alive by `owner`.
  struct block {
    transcript::entry_kind kind;
    std::shared_ptr<const void> owner{};
    std::string_view bytes{};
    bool is_unfinished = false;
    int number = 0;  // of the event exit
  };

  /// Errors: std::system_error when the directory or the file cannot be made.
  recorder(const std::string& directory, std::vector<std::string> command);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Keeps the order while bytes are passed on before they can be added: whoever adds holds it.
  [[nodiscard]] std::unique_lock<std::mutex> take_turn() { return std::unique_lock(turn_); }

  /// Appends in the order of the calls, with the time of the call. `wake` starts the writing, and
  /// so can come when the dialogue has got what it waits for.
  /// Blocking: while more than 16 MiB wait to be written, for 5 s at most; then recording ends.
  void add(block one);
  void wake();
  /// Records no more, for this reason.
  void give_up(const std::string& why);
  [[nodiscard]] bool is_recording() const;

  /// Writes what is left, and ends; gives up when the disk takes nothing for 5 s.
  /// Blocking: until it is written.
  void finish();
  /// Removes the file again: nothing came of the dialogue.
  void discard();

 private:
  struct timed_block {
    block what;
    std::chrono::microseconds at;
  };

  void run();
  void write(const timed_block& one);
  void write_line(transcript::entry& line, bool is_unfinished);
  void begin(const transcript::entry* first);
  void give_up_locked(const std::string& why);

  std::chrono::steady_clock::time_point started_;
  transcript::header header_;
  std::string suffix_;  // of the file's name, behind the shard
  std::string directory_;
  output_file file_;
  transcript::writer writer_;
  bool has_begun_ = false;        // the header is written
  bool is_name_settled_ = false;  // the first line of the daemon was seen

  std::mutex turn_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable emptied_;
  std::deque<timed_block> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t written_ = 0;  // blocks
  bool is_finishing_ = false;
  bool has_finished_ = false;
  bool has_given_up_ = false;
  std::thread thread_;
};

}  // namespace kclxx::cli
