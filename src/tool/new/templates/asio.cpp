#include <iostream>

#include <boost/asio/awaitable.hpp>

#include <kclxx/asio.hpp>

#include "processor.hpp"

/// Processes one record, at the same time as others.
static boost::asio::awaitable<void> process_record(kclxx::record record) {
  std::cout << "got " << record.data().size() << " bytes\n";
  co_return;
}

kclxx::processor_factory make_processor() {
  // A record is complete once process_record returns. Records with the same partition key are
  // processed one after another, others at the same time. When it throws, it is called again until
  // it succeeds. For a record that can never succeed, throw kclxx::permanent_error: it is then
  // stored in a file in KCLXX_PARKING_DIR.
  return kclxx::asio::parallel(&process_record, {.bad_record = kclxx::bad_record::park},
                               {.lanes = 16});
}
