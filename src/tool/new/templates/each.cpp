#include <iostream>

#include <kclxx/processing.hpp>

#include "processor.hpp"

kclxx::processor_factory make_processor() {
  // The record is complete once this returns. When it throws, it is called again until it succeeds.
  // For a record that can never succeed, throw kclxx::permanent_error: it is then stored in a file
  // in KCLXX_PARKING_DIR, and the next one follows.
  return kclxx::each(
      [](const kclxx::record& record) {
        std::cout << "got " << record.data().size() << " bytes\n";
      },
      {.bad_record = kclxx::bad_record::park});
}
