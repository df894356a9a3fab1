// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tool/process/descriptor.hpp"
#include "tool/transcript/dialogue_file.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::cli {

/// Records a running dialogue on a thread of its own, so that a slow disk does not hold it up. When
/// something cannot be written it says so once on stderr and records no more.
///
/// Whoever passes bytes on takes the turn, passes them on, and says so with one of the functions
/// below, which keep the order of the calls and the time of each. What the daemon sends comes as
/// pages of its pipe, by way of another pipe, and is copied by that thread alone.
/// Thread safety: all functions may be called from any thread; those for passages with the turn.
class recorder {
 public:
  /// Errors: std::system_error when the directory or the file cannot be made.
  recorder(const std::string& directory, std::vector<std::string> command);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  [[nodiscard]] std::unique_lock<std::mutex> take_turn() { return std::unique_lock(turn_); }

  /// Moves so many bytes of the daemon, which are there, out of the pipe `from`. False when that
  /// failed.
  /// Blocking: while more than 16 MiB wait in memory, for 5 s at most; then recording ends.
  bool move_from(int from, std::size_t count);
  /// Copies bytes of a side. Blocking: as above.
  void add(transcript::entry_kind line_of_side, std::string_view bytes);
  /// An end, or the exit with its number.
  void add_event(transcript::entry_kind event, int number = 0);

  [[nodiscard]] bool is_recording() const;
  /// Writes what is left, and ends; gives up when the disk takes nothing for 5 s.
  /// Blocking: until it is written.
  void finish();
  /// Removes the file again: nothing came of the dialogue.
  void discard();

 private:
  struct passage {
    transcript::entry_kind kind;
    std::size_t size = 0;            // of the bytes
    std::unique_ptr<char[]> copy{};  // else they are in the pipe
    std::size_t capacity = 0;        // of the copy
    int number = 0;
    std::chrono::microseconds at{};
  };

  bool copy_from(int from, std::size_t count);
  void push(passage one);
  [[nodiscard]] passage with_memory(transcript::entry_kind kind, std::size_t size);
  void run();
  void await_passages(std::unique_lock<std::mutex>& lock);
  void write(const passage& one);
  void write_from_pipe(const passage& one);
  void give_up_locked(const std::string& why);

  std::chrono::steady_clock::time_point started_;
  dialogue_file file_;
  descriptor read_end_;  // of the pipe for what the daemon sends
  descriptor write_end_;
  std::unique_ptr<char[]> piece_;  // of what is in it

  std::mutex turn_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable emptied_;
  std::vector<passage> queue_;
  std::vector<std::unique_ptr<char[]>> free_;  // of block_size each
  std::size_t in_memory_ = 0;                  // the copies that wait, by capacity
  std::size_t unseen_ = 0;                     // bytes that came since the thread looked last
  std::size_t written_ = 0;                    // passages
  bool is_asleep_ = false;
  bool is_finishing_ = false;
  bool has_finished_ = false;
  bool has_given_up_ = false;
  std::thread thread_;
};

}  // namespace kclxx::cli
