// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <kclxx/processor_factory.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/run_options.hpp>

namespace kclxx::test {

/// run_options with the mode of the processor.
struct session_options : run_options {
  session_options() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): tests name run_options, or nothing
  session_options(const run_options& options, checkpoint_mode with = checkpoint_mode::automatic)
      : run_options(options), mode(with) {}

  checkpoint_mode mode = checkpoint_mode::automatic;
};

/// Options with a checkpoint for every batch, and an observer, if one is given.
inline run_options prompt(std::shared_ptr<observer> observer = nullptr) {
  run_options options;
  options.checkpoint_interval = std::chrono::milliseconds(0);
  if (observer) options.observers = {std::move(observer)};
  return options;
}

/// Options with checkpoint_mode::manual, and without a pace unless one is given.
inline session_options manual(std::chrono::milliseconds interval = std::chrono::milliseconds(0),
                              const retry_options& retry = {}) {
  run_options options;
  options.checkpoint_interval = interval;
  options.retry = retry;
  return {options, checkpoint_mode::manual};
}

/// A processor that has a mode of its own, and passes its callbacks on to another processor.
class processor_in_mode final : public record_processor {
 public:
  processor_in_mode(std::unique_ptr<record_processor> inner, checkpoint_mode mode)
      : inner_(std::move(inner)), mode_(mode) {}

  [[nodiscard]] checkpoint_mode mode() const override { return mode_; }
  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    inner_->process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override { inner_->lease_lost(); }
  void shard_ended(const checkpointer& checkpointer) override { inner_->shard_ended(checkpointer); }
  void shutdown_requested(const checkpointer& checkpointer) override {
    inner_->shutdown_requested(checkpointer);
  }

 private:
  std::unique_ptr<record_processor> inner_;
  checkpoint_mode mode_;
};

/// The processors of `factory` in checkpoint_mode::manual, if `mode` is that.
inline processor_factory in_mode(processor_factory factory, checkpoint_mode mode) {
  if (mode == checkpoint_mode::automatic) return factory;
  return [factory = std::move(factory), mode](const shard_context& shard) {
    return std::make_unique<processor_in_mode>(factory(shard), mode);
  };
}

}  // namespace kclxx::test
