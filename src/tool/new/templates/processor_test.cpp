#include "processor.hpp"

#include <gtest/gtest.h>

#include <kclxx/testing/worker.hpp>

// The test kit plays the daemon, in virtual time, so the tests need no network.
TEST(processor, completes_what_it_was_given) {
  kclxx::testing::worker worker(make_processor());
  worker.initialize().deliver({{{literal}}, {{literal}}}).request_shutdown();
  EXPECT_EQ(worker.persisted(), kclxx::sequence_position("2")) << worker;
}

TEST(processor, resumes_after_a_crash) {
  kclxx::testing::worker worker(make_processor());
  worker.initialize().deliver({{{literal}}}).crash().resume().request_shutdown();
  EXPECT_EQ(worker.persisted(), kclxx::sequence_position("1")) << worker;
}

TEST(processor, completes_a_shard_that_ends) {
  kclxx::testing::worker worker(make_processor());
  worker.initialize().deliver({{{literal}}}).end_shard();
  EXPECT_EQ(worker.persisted(), kclxx::sequence_position("SHARD_END")) << worker;
}
