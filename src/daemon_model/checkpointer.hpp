// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/child_message.hpp"
#include "daemon_model/lease.hpp"
#include "daemon_model/lines.hpp"

namespace kclxx::daemon_model {

/// The KCL's ShardRecordProcessorCheckpointer: which checkpoints are in range, and which reach the
/// lease table at all.
class shard_record_processor_checkpointer {
 public:
  /// `lease` outlives this object.
  shard_record_processor_checkpointer(kcl version, lease& lease)
      : version_(version),
        lease_(lease),
        last_(lease.checkpoint()),
        largest_permitted_(lease.checkpoint()) {}

  void deliver(const sequence_position& largest) {
    if (largest_permitted_ < largest) largest_permitted_ = largest;
  }
  /// The shard's end is to be checkpointed from now on.
  void begin_shard_end() {
    at_shard_end_ = largest_permitted_;
    largest_permitted_ = sequence_position("SHARD_END");
  }

  struct outcome {
    std::optional<std::string> error{};            ///< the exception's simple name
    std::optional<sequence_position> attempted{};  ///< what reached the lease table, if anything
  };
  outcome checkpoint(const child_checkpoint& asked);

  /// The last one that succeeded.
  [[nodiscard]] const sequence_position& last() const noexcept { return last_; }
  [[nodiscard]] const sequence_position& largest_permitted() const noexcept {
    return largest_permitted_;
  }

 private:
  [[nodiscard]] std::optional<sequence_position> permitted(const child_checkpoint& asked) const;
  outcome advance(const sequence_position& position);

  kcl version_;
  lease& lease_;
  sequence_position last_;
  sequence_position largest_permitted_;
  std::optional<sequence_position> at_shard_end_;
};

}  // namespace kclxx::daemon_model
