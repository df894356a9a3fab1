// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>

#include <kclxx/kclxx.hpp>

#include "counts.hpp"

/// Counts the words of a shard's records in DIRECTORY/<shard id>.counts.
///
/// Run it with checkpoint_mode::manual: a record is complete once its words are in the file, so the
/// file is flushed first, and checkpointed after that.
class word_count : public kclxx::record_processor {
 public:
  /// Flushes every `flush_interval`; 0: with each batch.
  word_count(const kclxx::shard_context& context, const std::filesystem::path& directory,
             std::chrono::seconds flush_interval);

  void process_records(kclxx::record_batch batch, const kclxx::checkpointer& checkpointer) override;
  void shard_ended(const kclxx::checkpointer& checkpointer) override { flush(checkpointer); }
  void shutdown_requested(const kclxx::checkpointer& checkpointer) override { flush(checkpointer); }

 private:
  void flush(const kclxx::checkpointer& checkpointer);

  counts counts_;
  bool flushes_each_batch_;
  bool is_flushed_ = true;
};
