// SPDX-License-Identifier: Apache-2.0
#include "word_count.hpp"

#include "counts.hpp"
#include "disk.hpp"

kclxx::processor_factory word_count(const std::filesystem::path& directory,
                                    std::chrono::seconds flush_interval) {
  const auto counter_of = [directory](const kclxx::shard_context& shard) {
    return [path = directory / shard.shard_id()](const kclxx::record_batch& batch) {
      const disk::lock mine(path.string() + ".lock");
      counts stored(path.string() + ".counts");
      const auto fresh = batch.after(stored.position());
      if (fresh.empty()) return;
      for (const kclxx::record& record : fresh) stored.add(record.data(), record.position());
      stored.write();
    };
  };
  return kclxx::batches(counter_of, {}, {.linger = flush_interval});
}
