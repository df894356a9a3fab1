#include <iostream>

#include <kclxx/asio.hpp>

#include "processor.hpp"

boost::asio::awaitable<void> process_record(kclxx::record record) {
  std::cout << "got " << record.data() << "\n";
  co_return;
}

kclxx::processor_factory make_processor() {
  // A record is complete once process_record returns. Records with the same partition key are
  // processed one after another, others at the same time. When it throws, it is called again, up to
  // five times; after that the worker stops.
  return kclxx::asio::parallel(&process_record, {.attempts = 5}, {.lanes = 16});
}
