// SPDX-License-Identifier: Apache-2.0
// Prints each record. stdout is safe: it leads to the daemon's log, not into the dialogue.
#include <iostream>

#include <kclxx/kclxx.hpp>

class print_records : public kclxx::record_processor {
  void initialize(const kclxx::shard_context& context) override {
    std::cout << "reading " << context.shard_id() << "\n";
  }

  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    for (const kclxx::record& record : batch) {
      std::cout << record.partition_key().value_or("-") << ": " << record.data() << "\n";
    }
  }  // what this returned from is checkpointed, every five seconds
};

int main() { return kclxx::run<print_records>(); }
