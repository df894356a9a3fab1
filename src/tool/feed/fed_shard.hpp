// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tool/lockstep/lockstep_daemon.hpp"
#include "tool/process/child_dialogue.hpp"

namespace kclxx::tool {

struct feed_options {
  std::uint64_t shards = 1;
  std::string key;         ///< a separator, or a regular expression with a group; empty: the number
  std::uint64_t rate = 0;  ///< lines in a second; 0: as fast as the children allow
  std::uint64_t batch = 1000;
  std::string state;        ///< a folder for the positions; empty: they are not kept
  std::string transcripts;  ///< a folder; empty: none are written
  bool restarts = false;
  std::vector<std::string> command{};
};

/// A line of the input, as a record.
struct fed_line {
  std::string data;
  std::string key;
  std::chrono::milliseconds arrived{};
};

/// One shard of `kclxx feed`: the lines that wait for it, and the daemon that is played to its
/// child. The n-th line of a shard has the sequence number n.
///
/// Thread safety: run() has a thread of its own; the figures are read when it has returned; the
/// rest may be called from any thread.
class fed_shard {
 public:
  /// Lines up to `covered` are not delivered again. Lifetime: the options outlive it.
  fed_shard(std::string id, const feed_options& options, std::uint64_t covered);

  /// Blocking: while the child is too far behind. Errors: std::bad_alloc.
  void put(std::vector<fed_line> lines);
  /// No line comes any more; those that wait are still delivered.
  void end_input();
  /// What waits is not delivered; the child is asked to shut down after its action.
  void stop();

  /// Plays until the input ended, it was stopped, or its child has failed.
  void run();

  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t put_count() const noexcept { return put_; }
  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_ - begin_; }
  [[nodiscard]] std::uint64_t covered() const noexcept { return covered_ - begin_; }
  /// How many lines an earlier run has covered.
  [[nodiscard]] std::uint64_t covered_before() const noexcept { return begin_; }
  /// Lines of those that the input has, this time too.
  [[nodiscard]] std::uint64_t passed_over() const noexcept { return passed_over_; }
  /// How many children have died.
  [[nodiscard]] int deaths() const noexcept { return deaths_; }
  /// Lines that wait are delivered to no child any more.
  [[nodiscard]] bool has_given_up() const noexcept { return has_given_up_; }
  /// What ended it, if that was no child; cancelled, too.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }

 private:
  enum class next { batch, nothing, end };

  void play();
  void serve(lockstep_daemon& daemon);
  next take_batch();
  [[nodiscard]] action action_of_batch() const;
  [[nodiscard]] std::optional<std::string> store(const sequence_position& position);
  void on_progress(lockstep_daemon& daemon);
  void on_death(const std::string& what);
  void say(const std::string& what) const;

  const std::string id_;
  const feed_options& options_;
  const std::uint64_t begin_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<fed_line> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t put_ = 0;
  bool input_ended_ = false;
  bool is_stopped_ = false;

  // Of the thread that runs.
  std::vector<fed_line> batch_;
  std::deque<fed_line> uncovered_;  // delivered; kept for the next child
  std::size_t uncovered_bytes_ = 0;
  std::uint64_t delivered_;
  std::uint64_t covered_;
  int lives_ = 0;
  int deaths_ = 0;
  int deaths_in_row_ = 0;  // without a position that is covered
  bool has_given_up_ = false;
  bool has_told_store_ = false;
  bool has_told_limit_ = false;
  std::exception_ptr error_;
};

/// "shardId-000000000000"
std::string shard_name(std::uint64_t number);
/// Where a shard's position is kept.
std::string position_file(const feed_options& options, const std::string& shard);

}  // namespace kclxx::tool
