#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "processor.hpp"

// Coroutines run on a thread of their own, which the test kit's virtual time has no part in: they
// are tested alone.
TEST(processor, processes_a_record) {
  kclxx::record::fields fields;
  fields.data = "one";
  fields.partition_key = "key";
  fields.sequence_number = "1";
  boost::asio::io_context context;
  auto done = boost::asio::co_spawn(context, process_record(kclxx::record(fields)),
                                    boost::asio::use_future);
  context.run();
  EXPECT_NO_THROW(done.get());
}
