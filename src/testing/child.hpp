// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include <kclxx/record_processor.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "base/checkpoint_port.hpp"
#include "protocol/decoder.hpp"
#include "session/processor_host.hpp"
#include "session/session.hpp"
#include "testing/usage.hpp"
#include "testing/virtual_clock.hpp"

namespace kclxx::testing {

/// One child process: what src/kclxx/runtime is in production, on one thread and in virtual time.
/// The session decides; this carries out.
///
/// Lifetime: checkpointers may outlive the dialogue, but call nobody once it is killed.
class child final : public detail::checkpoint_port, public std::enable_shared_from_this<child> {
 public:
  using time_point = virtual_clock::clock::time_point;

  /// How the daemon and the test are told.
  struct surroundings {
    std::function<void(std::string_view line)> written;  // without its newline
    std::function<void(log_level, std::string_view)> log;
    std::function<void(session::callback)> callback_begins;
    std::function<void(exit_status)> left;
  };
  struct configuration {
    processor_factory make_processor;
    run_options options;
    shard_context::fields context;  // the names
    std::uint32_t seed;
  };

  child(configuration with, std::shared_ptr<virtual_clock> clock, std::shared_ptr<usage> usage,
        surroundings around);

  /// From the daemon; read by settle.
  void receive(std::string line) { unread_.push_back(std::move(line)); }
  void end_input() { has_input_ended_ = true; }

  /// Reads what the daemon wrote, until nothing is left; the daemon answers in no time.
  void settle();
  /// False when there is none to run.
  bool run_next_callback();
  [[nodiscard]] bool is_in_callback() const noexcept { return is_in_callback_; }

  /// When time leads to something here by itself.
  [[nodiscard]] std::optional<time_point> next_timer() const;
  /// Fires the timers that are due.
  void fire_timers();

  /// kill -9: from here on nothing is called, written or logged; the processor is destroyed.
  void kill();
  [[nodiscard]] bool is_killed() const noexcept { return is_killed_; }

  [[nodiscard]] const std::optional<exit_status>& status() const noexcept { return status_; }
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }
  [[nodiscard]] record_processor* processor() const noexcept { return host_.get(); }
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }

  result wait(const std::optional<sequence_position>& position,
              const std::optional<time_point>& deadline) override;
  std::error_code request(const std::optional<sequence_position>& position) override;

 private:
  template <class Event>
  void turn(Event event);
  struct effects;
  void carry_out(session::action& one, effects& after);
  void write_lines();

  void read(const std::string& line);
  [[nodiscard]] result give_up(session::waiter_id id);
  [[noreturn]] void refuse_endless_wait(session::waiter_id id,
                                        const std::optional<sequence_position>& position);

  configuration with_;
  std::shared_ptr<virtual_clock> clock_;
  std::shared_ptr<usage> usage_;
  surroundings around_;
  session::session session_;
  protocol::decoder decoder_;
  std::deque<std::string> unread_;
  std::string lines_;  // decided, not yet written
  std::array<std::optional<time_point>, 2> timers_;
  std::optional<time_point> patience_;  // when the running callback has lasted long
  std::unordered_map<session::waiter_id, std::optional<result>> waiting_;
  session::waiter_id next_waiter_ = 1;
  std::optional<session::call> call_;
  std::optional<exit_status> status_;
  std::stop_source stop_;
  std::exception_ptr thrown_;
  session::processor_host host_;
  bool is_in_callback_ = false;
  bool is_paused_ = false;
  bool has_input_ended_ = false;
  bool is_killed_ = false;
};

}  // namespace kclxx::testing
