#include <iostream>

#include <kclxx/processing.hpp>

#include "processor.hpp"

kclxx::processor_factory make_processor() {
  // The batch is complete once this returns. When it throws, it is called again with parts of the
  // batch, until the record that fails is alone, and with that record until it succeeds. For a
  // record that can never succeed, throw kclxx::permanent_error: it is then stored in a file in
  // KCLXX_PARKING_DIR. A batch can come again after a crash. If an effect must not be repeated,
  // make one transaction: read the shard's stored position under a lock, apply the records of
  // batch.after(position), and store batch.back().position().
  return kclxx::batches(
      [](kclxx::record_batch batch) {
        for (const kclxx::record& record : batch)
          std::cout << "got " << record.data().size() << " bytes\n";
      },
      {.bad_record = kclxx::bad_record::park});
}
