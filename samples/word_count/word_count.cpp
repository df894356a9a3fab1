// SPDX-License-Identifier: Apache-2.0
#include "word_count.hpp"

#include <utility>

word_count::word_count(const kclxx::shard_context& context, const std::filesystem::path& directory,
                       std::chrono::seconds flush_interval)
    : counts_(directory, context.shard_id()),
      flushes_each_batch_(flush_interval == std::chrono::seconds(0)) {
  if (flushes_each_batch_) return;
  // On this thread, between callbacks.
  context.every(flush_interval,
                [this, checkpointer = context.get_checkpointer()] { flush(checkpointer); });
}

void word_count::process_records(kclxx::record_batch batch,
                                 const kclxx::checkpointer& checkpointer) {
  for (const kclxx::record& record : batch.after(counts_.position())) {
    counts_.add(record.data(), record.position());
    is_flushed_ = false;
  }
  if (flushes_each_batch_) flush(checkpointer);
}

void word_count::flush(const kclxx::checkpointer& checkpointer) {
  if (!std::exchange(is_flushed_, true)) counts_.flush();
  // Not counts_.position(): after a crash the file may be ahead of what was delivered again.
  checkpointer.async_checkpoint();
}
