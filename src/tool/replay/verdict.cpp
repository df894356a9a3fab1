// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/verdict.hpp"

#include <utility>

namespace kclxx::replay {

namespace {

std::string ending(int status, int signal) {
  return signal != 0 ? "signal " + std::to_string(signal) : "exit status " + std::to_string(status);
}

}  // namespace

void verdict::breach(std::string message, std::string_view child_line) {
  summary_.breaches.add(line_, std::move(message), child_line);
}

void verdict::damage(std::size_t transcript_line, std::string message) {
  if (!summary_.damage) summary_.damage = diagnostic{transcript_line, std::move(message), {}};
}

void verdict::fail(std::string reason) {
  if (!summary_.failure) summary_.failure = diagnostic{line_, std::move(reason), {}};
}

void verdict::on_lost_line(std::string_view line) {
  if (!is_end_explained()) breach("nobody reads this line: it came after the last status", line);
}

void verdict::on_worker_ended(const std::string& reason, std::string_view child_line) {
  worker_ended_ = true;
  if (output_ended_) {
    fail(reason);
  } else if (!was_killed_) {
    breach(reason + "; the daemon ends the whole worker", child_line);
  }
}

void verdict::on_exit(int status, int signal) {
  const bool is_success = status == 0 && signal == 0;
  if (output_ended_ && summary_.failure && !was_killed_) {
    summary_.failure->what += ", " + ending(status, signal);
  } else if (!is_success && !is_end_explained() && !was_killed_) {
    fail("the child left with " + ending(status, signal));
  }
}

void verdict::compare_exit(int status, int signal, const transcript::entry& recorded) {
  if (is_deliberate_) return;
  const bool was_signal = recorded.kind == transcript::entry_kind::killed;
  const std::string was =
      ending(was_signal ? 0 : recorded.number, was_signal ? recorded.number : 0);
  const std::string is = ending(status, signal);
  if (was == is) return;
  summary_.differences.add(recorded.line_number,
                           "recorded was " + was + ", but the child left with " + is);
}

}  // namespace kclxx::replay
