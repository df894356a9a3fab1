// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "driver/line_decoder.hpp"
#include "driver/session_driver.hpp"

namespace kclxx::driver {

/// A dialogue that a plain file has (P58). All its lines are there at once, and its answers are
/// those to the checkpoints of another run. So its next line is handed over only while no action is
/// open, and an answer only when it was asked for, whatever its position.
///
/// Thread safety: none; its functions are events of the driver.
class file_dialogue {
 public:
  explicit file_dialogue(session_driver& driver) : driver_(driver) {}

  void on_line(line_decoder::outcome line);
  void on_end();
  /// The child has written: what waits may be due.
  void resume() { pass_on(); }
  /// No more lines now.
  [[nodiscard]] bool is_full() const noexcept;

 private:
  void pass_on();

  session_driver& driver_;
  std::optional<line_decoder::decoded> action_;  // not handed over yet
  bool has_ended_ = false;                       // after that action
};

}  // namespace kclxx::driver
