// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include <kclxx/checkpointer.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::processing {

/// Requests checkpoints during a long batch: about once a second, while the clock is read once for
/// up to 64 records.
class progress {
 public:
  progress(const shard_context& shard, const checkpointer& with) : shard_(shard), with_(with) {}

  /// This record of the batch is complete, and all before it.
  void on_complete(const record& last) {
    if (--left_ == 0) look(last);
  }

 private:
  using clock = shard_context::clock;

  void look(const record& last) {
    const auto now = shard_.now();
    const bool is_quick = now - looked_ < std::chrono::milliseconds(10);
    stride_ = is_quick ? std::min(2 * stride_, 64) : 1;
    left_ = stride_;
    looked_ = now;
    if (now - requested_ < std::chrono::seconds(1)) return;
    requested_ = now;
    with_.async_checkpoint(last);
  }

  const shard_context& shard_;
  const checkpointer& with_;
  clock::time_point looked_ = shard_.now();
  clock::time_point requested_ = looked_;
  int stride_ = 1;
  int left_ = 1;
};

}  // namespace kclxx::processing
