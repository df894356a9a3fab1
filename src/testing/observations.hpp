// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/testing/daemon.hpp>

#include "daemon_model/shard_consumer.hpp"
#include "session/output.hpp"
#include "testing/virtual_clock.hpp"

namespace kclxx::testing {

/// What a test can ask for, collected as it happens.
class observations {
 public:
  explicit observations(std::shared_ptr<const virtual_clock> clock) : clock_(std::move(clock)) {}

  /// `last`: what is persisted, for an answer without a position.
  void answered(const daemon_model::answered& answer, const sequence_position& last);
  /// Whatever else the daemon did.
  void happened(const daemon_model::daemon_event& event);
  void callback(protocol::action_kind kind);
  void log(const log_entry& entry);
  /// A line of the dialogue; long ones are cut short.
  void note(std::string_view source, std::string_view text);

  [[nodiscard]] const std::vector<sequence_position>& checkpoints() const noexcept {
    return checkpoints_;
  }
  [[nodiscard]] const std::vector<daemon::checkpoint_attempt>& attempts() const noexcept {
    return attempts_;
  }
  [[nodiscard]] const std::vector<log_entry>& log() const noexcept { return log_; }
  [[nodiscard]] const std::vector<std::string>& callbacks() const noexcept { return callbacks_; }
  [[nodiscard]] const std::string& dialogue() const noexcept { return dialogue_; }

 private:
  std::shared_ptr<const virtual_clock> clock_;
  std::vector<sequence_position> checkpoints_;
  std::vector<daemon::checkpoint_attempt> attempts_;
  std::vector<log_entry> log_;
  std::vector<std::string> callbacks_;
  std::string dialogue_;
};

}  // namespace kclxx::testing
