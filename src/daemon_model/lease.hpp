// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <kclxx/sequence_position.hpp>

namespace kclxx::daemon_model {

/// The shard's row in the lease table, as far as checkpoints see it: what is persisted, whether
/// this worker still owns it, and how writing to it fails.
class lease {
 public:
  /// The simple name of the Java exception with which the write fails; std::nullopt: it succeeds.
  using fault = std::function<std::optional<std::string>(const sequence_position&)>;

  /// `checkpoint` may be a sentinel such as TRIM_HORIZON: nothing was persisted yet.
  explicit lease(const sequence_position& checkpoint) : checkpoint_(checkpoint) {}

  /// Where a successor would resume: after this position.
  [[nodiscard]] const sequence_position& checkpoint() const noexcept { return checkpoint_; }

  /// Another worker took it: every write fails with ShutdownException from now on.
  void lose() noexcept { is_lost_ = true; }
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }
  /// Asked before each write, in place of the one that was set before.
  void set_fault(fault decide) { fault_ = std::move(decide); }

  /// A write. std::nullopt when it succeeded, else the exception's simple name.
  std::optional<std::string> set_checkpoint(const sequence_position& position) {
    if (is_lost_) return "ShutdownException";
    if (fault_) {
      if (auto name = fault_(position)) {
        if (*name == "ShutdownException") is_lost_ = true;
        return name;
      }
    }
    checkpoint_ = position;
    return std::nullopt;
  }

 private:
  sequence_position checkpoint_;
  fault fault_;
  bool is_lost_ = false;
};

}  // namespace kclxx::daemon_model
