#include <iostream>

#include <kclxx/processing.hpp>

#include "processor.hpp"

kclxx::processor_factory make_processor() {
  // The batch is complete once this returns. When it throws, it is called again with parts of the
  // batch, until the record that fails is alone; that one is tried five times. After that the
  // worker stops. See failure_policy for skipping or parking the record instead.
  return kclxx::batches(
      [](kclxx::record_batch batch) {
        for (const kclxx::record& record : batch) std::cout << "got " << record.data() << "\n";
      },
      {.attempts = 5});
}
