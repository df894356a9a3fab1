// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/run_options.hpp"

namespace kclxx::test {

/// Keeps the arguments of its callbacks, and calls `script` in each.
class recording_processor : public record_processor {
 public:
  using step = std::function<void(const std::string& callback, const checkpointer*)>;

  explicit recording_processor(const shard_context& shard, step script = {},
                               checkpoint_mode mode = checkpoint_mode::automatic)
      : context(&shard),
        shard_id(shard.shard_id()),
        start(shard.start_position()),
        script_(std::move(script)),
        mode_(mode) {
    run("initialize", nullptr);
  }

  [[nodiscard]] checkpoint_mode mode() const override { return mode_; }
  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    for (const record& entry : batch) {
      records.push_back(to_string(entry.position()) + " " +
                        std::string(entry.partition_key().value_or("-")) + ": " +
                        (entry.has_data() ? std::string(entry.data()) : "null"));
      const auto arrival = entry.approximate_arrival_timestamp();
      arrivals.push_back(arrival ? std::chrono::duration_cast<std::chrono::milliseconds>(
                                       arrival->time_since_epoch())
                                       .count()
                                 : -1);
    }
    behind = batch.millis_behind_latest();
    run("process_records", &checkpointer);
  }
  void lease_lost() override { run("lease_lost", nullptr); }
  void shard_ended(const checkpointer& checkpointer) override { run("shard_ended", &checkpointer); }
  void shutdown_requested(const checkpointer& checkpointer) override {
    run("shutdown_requested", &checkpointer);
  }

  const shard_context* context;
  std::string shard_id;
  std::optional<sequence_position> start;
  std::vector<std::string> records;
  std::vector<long long> arrivals;
  std::optional<std::chrono::milliseconds> behind;
  std::optional<checkpointer> handle;

 private:
  void run(const std::string& callback, const checkpointer* checkpointer) {
    if (checkpointer != nullptr) handle = *checkpointer;
    if (script_) script_(callback, checkpointer);
  }

  step script_;
  checkpoint_mode mode_;
};

/// A script that calls a function in process_records only.
inline recording_processor::step with_batch(std::function<void(const checkpointer&)> function) {
  return [function = std::move(function)](const std::string& callback,
                                          const checkpointer* checkpointer) {
    if (callback == "process_records") function(*checkpointer);
  };
}

inline testing::worker scripted(const recording_processor::step& script = {},
                                const session_options& options = {},
                                const testing::worker_options& with = {}) {
  return testing::worker(
      [script, mode = options.mode](const shard_context& shard) {
        return std::make_unique<recording_processor>(shard, script, mode);
      },
      options, with);
}

}  // namespace kclxx::test
