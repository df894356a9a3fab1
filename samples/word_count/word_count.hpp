// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include <kclxx/kclxx.hpp>

#include "counts.hpp"

/// Counts the words of a shard's records in DIRECTORY/<shard id>.counts.
///
/// Run it with complete_when::by_request: a record is complete once its words are in the file, so
/// the file is flushed first and the position requested after that.
class word_count : public kclxx::record_processor {
 public:
  word_count(std::filesystem::path directory, std::chrono::seconds flush_interval);

  void initialize(const kclxx::shard_context& context) override;
  void process_records(kclxx::record_batch batch, kclxx::checkpointer& checkpointer) override;
  void shard_ended(kclxx::checkpointer& checkpointer) override;
  void shutdown_requested(kclxx::checkpointer& checkpointer) override;

 private:
  void flush(kclxx::checkpointer& checkpointer);

  std::filesystem::path directory_;
  std::chrono::seconds flush_interval_;
  const kclxx::shard_context* context_ = nullptr;
  std::optional<counts> counts_;
  std::chrono::steady_clock::time_point last_flush_{};
  bool is_flushed_ = true;
};
