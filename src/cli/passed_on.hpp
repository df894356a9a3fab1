// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <thread>

#include "cli/buffer_pool.hpp"
#include "cli/descriptor.hpp"
#include "cli/line_recorder.hpp"
#include "cli/recorder.hpp"

namespace kclxx::cli {

/// What the child has got from the daemon, on its way to the recorder: a pipe into which pages
/// are moved without being copied, and a thread that reads it while the dialogue goes on.
///
/// Thread safety: whoever calls holds the recorder's turn.
class passed_on {
 public:
  /// Errors: std::system_error.
  passed_on(recorder& to, buffer_pool& pool);
  ~passed_on();
  passed_on(const passed_on&) = delete;
  passed_on& operator=(const passed_on&) = delete;

  /// Moves so many bytes, which are there, out of the pipe `from`. False when that failed.
  bool move_from(int from, std::size_t count);
  /// When it returns, the recorder has all that was moved.
  void drain();
  /// The daemon's side has ended.
  void end();

 private:
  void run();

  std::mutex reading_;  // taken behind the turn, or alone
  line_recorder lines_;
  recorder& recorder_;
  descriptor read_end_;
  descriptor write_end_;
  std::thread thread_;
};

}  // namespace kclxx::cli
