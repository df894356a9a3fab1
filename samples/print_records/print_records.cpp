// SPDX-License-Identifier: Apache-2.0
// Prints each record. Printing is safe: kclxx redirects stdout to stderr.
#include <iostream>

#include <kclxx/kclxx.hpp>

class print_records : public kclxx::record_processor {
 public:
  explicit print_records(const kclxx::shard_context& shard) {
    std::cout << "reading " << shard.shard_id() << "\n";
  }

  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    for (const kclxx::record& record : batch) {
      std::cout << record.partition_key().value_or("-") << ": " << record.data() << "\n";
    }
  }  // once this returns, the batch is complete; kclxx checkpoints at most once every five seconds
};

int main() { return kclxx::run<print_records>(); }
