// SPDX-License-Identifier: Apache-2.0
#include "word_count.hpp"

#include <utility>

word_count::word_count(std::filesystem::path directory, std::chrono::seconds flush_interval)
    : directory_(std::move(directory)), flush_interval_(flush_interval) {}

void word_count::initialize(const kclxx::shard_context& context) {
  context_ = &context;
  counts_.emplace(directory_ / (context.shard_id() + ".counts"));
  last_flush_ = context.now();
}

void word_count::process_records(kclxx::record_batch batch, kclxx::checkpointer& checkpointer) {
  for (const kclxx::record& record : batch) {
    const kclxx::sequence_position position = record.position();
    if (counts_->has(position)) continue;  // delivered again after a restart
    counts_->add(record.data(), position);
    is_flushed_ = false;
  }
  // The clock is looked at when the daemon calls. With callProcessRecordsEvenForEmptyRecordList it
  // calls on an idle shard, too.
  if (context_->now() - last_flush_ >= flush_interval_) flush(checkpointer);
}

void word_count::shard_ended(kclxx::checkpointer& checkpointer) { flush(checkpointer); }

void word_count::shutdown_requested(kclxx::checkpointer& checkpointer) { flush(checkpointer); }

void word_count::flush(kclxx::checkpointer& checkpointer) {
  if (!std::exchange(is_flushed_, true)) counts_->flush();
  last_flush_ = context_->now();
  // Not counts_->position(): after a crash the file may be ahead of what was delivered again.
  checkpointer.request();
}
