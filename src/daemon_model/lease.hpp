// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <kclxx/sequence_position.hpp>

namespace kclxx::daemon_model {

/// The shard's row in the lease table, as one worker sees it and as far as checkpoints do: what is
/// persisted, whether this worker still owns it, and how writing to it fails.
class lease {
 public:
  /// The simple name of the Java exception with which the write fails; std::nullopt: it succeeds.
  using fault = std::function<std::optional<std::string>(const sequence_position&)>;

  /// `checkpoint` may be a sentinel such as TRIM_HORIZON: nothing was persisted yet.
  explicit lease(const sequence_position& checkpoint)
      : row_(std::make_shared<row>(row{checkpoint, 0})) {}

  /// Where a successor would resume: after this position.
  [[nodiscard]] const sequence_position& checkpoint() const noexcept { return row_->checkpoint; }

  /// Another worker took it: every write fails with ShutdownException from now on.
  void lose() noexcept {
    if (!is_lost()) ++row_->owner;
  }
  [[nodiscard]] bool is_lost() const noexcept { return row_->owner != owner_; }
  /// The same row, as the worker sees it that takes it now. Whoever had it has lost it.
  [[nodiscard]] lease take_over() const { return lease(row_); }
  /// Asked before each write, in place of the one that was set before.
  void set_fault(fault decide) { fault_ = std::move(decide); }

  /// A write. std::nullopt when it succeeded, else the exception's simple name.
  std::optional<std::string> set_checkpoint(const sequence_position& position) {
    if (is_lost()) return "ShutdownException";
    if (fault_) {
      if (auto name = fault_(position)) {
        if (*name == "ShutdownException") lose();
        return name;
      }
    }
    row_->checkpoint = position;
    return std::nullopt;
  }

 private:
  struct row {
    sequence_position checkpoint;
    std::uint64_t owner;  // counts those who had it
  };

  explicit lease(std::shared_ptr<row> taken) : row_(std::move(taken)), owner_(++row_->owner) {}

  std::shared_ptr<row> row_;
  std::uint64_t owner_ = 0;
  fault fault_;
};

}  // namespace kclxx::daemon_model
