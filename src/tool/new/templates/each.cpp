#include <iostream>

#include <kclxx/processing.hpp>

#include "processor.hpp"

kclxx::processor_factory make_processor() {
  // The record is complete once this returns. When it throws, it is called again, up to five times;
  // after that the worker stops. See failure_policy for skipping or parking the record instead.
  return kclxx::each(
      [](const kclxx::record& record) { std::cout << "got " << record.data() << "\n"; },
      {.attempts = 5});
}
