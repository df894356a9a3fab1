// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "tool/check/checked_child.hpp"
#include "tool/process/child_dialogue.hpp"

namespace kclxx::tool {

/// A process under `kclxx check`. Its stderr is read all the time, as the daemon reads it, and the
/// last part is kept.
class checked_process final : public check::checked_child {
 public:
  /// Errors: start_error.
  checked_process(const std::vector<std::string>& command, std::chrono::milliseconds limit);

  bool send(std::string_view bytes) override;
  bool answer(std::string_view bytes) override;
  bool wait_until_read() override;
  check::read_result next_line(std::chrono::milliseconds limit) override;
  void pause(std::chrono::milliseconds time) override;
  void close_input() override { dialogue_.close_input(); }
  void abandon() override;
  void signal(check::signal_name name) override;
  std::optional<check::child_end> wait_end(std::chrono::milliseconds limit) override;
  std::string error_text() override;

 private:
  using clock = child_dialogue::clock;

  void read_error();

  child_dialogue dialogue_;
  boost::asio::posix::stream_descriptor error_;
  std::array<char, 4096> error_chunk_{};
  std::string error_text_;
  std::chrono::milliseconds limit_;
  std::deque<std::string> ahead_;  // lines that came while a line was sent
  bool output_ended_ = false;
};

}  // namespace kclxx::tool
