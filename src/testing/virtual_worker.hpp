// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/testing/worker.hpp>

#include "base/duration.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "session/output.hpp"
#include "testing/virtual_host.hpp"
#include "testing/virtual_threads.hpp"

namespace kclxx::testing {

/// The records that the shard has: numbers them, writes them as the daemon does, and keeps them for
/// a successor.
class delivered_records {
 public:
  using milliseconds = std::chrono::milliseconds;

  struct batch {
    std::string line;
    std::optional<sequence_position> largest{};  ///< std::nullopt when it is empty
  };

  /// Adds a batch. A record with an empty sequence number gets the number after the highest so far.
  /// A record that was delivered before is repeated with its fields.
  /// Errors: std::invalid_argument.
  batch add(std::span<const record::fields> records,
            std::optional<milliseconds> millis_behind_latest);
  /// Adds a batch of payloads, and fills in the further fields. `are_aggregated`: they are the user
  /// records of a single aggregated record.
  batch add_payloads(std::span<const std::string> payloads, bool are_aggregated,
                     milliseconds arrival, std::optional<milliseconds> millis_behind_latest);
  /// The shard is read from here on, so numbers continue after this position.
  void start_after(const sequence_position& position);
  /// The records after the position, in batches as large as the daemon's largest.
  [[nodiscard]] std::vector<batch> after(const sequence_position& position) const;

 private:
  struct stored {
    std::optional<std::string> data{};
    std::optional<std::string> partition_key{};
    std::optional<milliseconds> arrival{};
    bool operator==(const stored&) const = default;
  };
  [[nodiscard]] static stored stored_of(const record::fields& fields);
  /// Errors: std::invalid_argument.
  void require_possible(const sequence_position& position,
                        const std::optional<sequence_position>& before,
                        const record::fields& fields) const;

  std::map<sequence_position, stored> records_;
  std::optional<sequence_position> highest_;
};

/// The observations of a test, collected as things happen.
class observations {
 public:
  explicit observations(std::shared_ptr<const virtual_clock> clock) : clock_(std::move(clock)) {}

  /// `last`: the persisted position, for an answer without a position.
  void answered(const daemon_model::answered& answer, const sequence_position& last);
  /// The daemon did anything but answer a checkpoint.
  void happened(const daemon_model::daemon_event& event);
  void callback(protocol::action_kind kind);
  void log(const log_entry& entry);
  /// Adds a line to the dialogue; a long text is cut short.
  void note(std::string_view source, std::string_view text);

  [[nodiscard]] const std::vector<sequence_position>& checkpoints() const noexcept {
    return checkpoints_;
  }
  [[nodiscard]] const std::vector<worker::checkpoint_attempt>& attempts() const noexcept {
    return attempts_;
  }
  [[nodiscard]] const std::vector<log_entry>& log() const noexcept { return log_; }
  [[nodiscard]] const std::vector<std::string>& callbacks() const noexcept { return callbacks_; }
  [[nodiscard]] const std::string& dialogue() const noexcept { return dialogue_; }

 private:
  std::shared_ptr<const virtual_clock> clock_;
  std::vector<sequence_position> checkpoints_;
  std::vector<worker::checkpoint_attempt> attempts_;
  std::vector<log_entry> log_;
  std::vector<std::string> callbacks_;
  std::string dialogue_;
};

/// The worker behind testing::worker: joins the daemon model with a child at a time, and runs both
/// until they are quiet.
class worker::virtual_worker {
 public:
  virtual_worker(processor_factory make_processor, const run_options& options,
                 worker_options settings);
  /// A successor, which takes the lease from the predecessor.
  explicit virtual_worker(const virtual_worker& predecessor, std::uint32_t seed);
  virtual_worker(const virtual_worker&) = delete;
  virtual_worker& operator=(const virtual_worker&) = delete;
  ~virtual_worker();

  // The functions of testing::worker; `name` is the function's, for messages.
  void initialize(std::string_view shard_id, const sequence_position& start);
  /// `make` adds the batch to the records; it is called when the batch can be delivered.
  void deliver(const char* name,
               const std::function<delivered_records::batch(delivered_records&)>& make);
  void call(const char* name, protocol::action_kind kind);
  void end_input();
  void advance(milliseconds time);
  void crash();
  void resume();
  void fail_next_checkpoint(std::string_view exception, int times);
  void lose_lease_silently();
  [[nodiscard]] std::unique_ptr<virtual_worker> start_successor();
  void end_input_in_next_callback();

  [[nodiscard]] const observations& seen() const noexcept { return seen_; }
  [[nodiscard]] const daemon_model::lease& lease() const noexcept { return lease_; }
  [[nodiscard]] virtual_host& child() const noexcept { return *child_; }
  [[nodiscard]] const virtual_clock& clock() const noexcept { return *clock_; }
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept {
    return child_->thrown() ? child_->thrown() : thrown_;
  }
  [[nodiscard]] bool is_asked_to_stop() const noexcept { return is_asked_to_stop_; }
  /// A line about the faults that no checkpoint has met; empty when there are none.
  [[nodiscard]] std::string unmet_faults() const;
  /// The arrival of records that are delivered now.
  [[nodiscard]] milliseconds arrival() const;

 private:
  void run_function(const char* name, const std::function<void()>& body);
  /// Errors: std::logic_error when a daemon could not do this now.
  void require(const char* name, protocol::action_kind kind) const;
  /// Errors: std::logic_error when no successor would read it.
  void require_shard(const std::string& name) const;
  [[nodiscard]] std::string why_not(protocol::action_kind kind) const;
  [[nodiscard]] std::string how_it_left() const;

  void start_child();
  void change_lease(daemon_model::lease changed);
  void hold_lease();
  void send(protocol::action_kind kind, std::string line,
            const std::optional<sequence_position>& largest = std::nullopt);
  void send_initialize();
  void call(protocol::action_kind kind);
  void deliver(delivered_records::batch batch);
  /// Initializes a processor at the lease's checkpoint, and delivers the records after it.
  void begin_successor();
  /// Delivers the records that only a predecessor or successor of this worker has delivered so far.
  void deliver_missed();
  void run_until_quiet();
  void close_input();
  void take(daemon_model::daemon_events happened);
  void on_callback(protocol::action_kind kind);
  void on_wait_without_end();
  void shut_down_if_asked();
  void on_left(kclxx::exit_status status);

  processor_factory make_processor_;
  run_options options_;
  worker_options settings_;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<usage> usage_ = std::make_shared<usage>();
  std::shared_ptr<idle_time> idle_ =
      std::make_shared<idle_time>(detail::clamped(settings_.idle_limit));
  observations seen_{clock_};
  std::shared_ptr<delivered_records> records_ = std::make_shared<delivered_records>();
  sequence_position delivered_{"TRIM_HORIZON"};  // to the present child, up to here
  std::string shard_id_;
  std::deque<std::string> faults_;
  daemon_model::lease lease_;
  std::optional<daemon_model::shard_consumer> consumer_;
  std::shared_ptr<virtual_host> child_;
  std::exception_ptr thrown_;  // of earlier children
  bool is_initialized_ = false;
  bool ends_input_in_callback_ = false;
  bool is_asked_to_stop_ = false;  // by the present child
};

}  // namespace kclxx::testing
