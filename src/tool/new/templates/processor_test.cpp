#include "processor.hpp"

#include <gtest/gtest.h>

#include <kclxx/testing/daemon.hpp>

// The test kit plays the daemon, in virtual time, so the tests need no network.
TEST(processor, completes_what_it_was_given) {
  kclxx::testing::daemon daemon(make_processor());
  daemon.initialize().deliver({{{literal}}, {{literal}}}).request_shutdown();
  EXPECT_EQ(daemon.persisted(), kclxx::sequence_position("2")) << daemon;
}

TEST(processor, resumes_after_a_crash) {
  kclxx::testing::daemon daemon(make_processor());
  daemon.initialize().deliver({{{literal}}}).crash().resume().request_shutdown();
  EXPECT_EQ(daemon.persisted(), kclxx::sequence_position("1")) << daemon;
}

TEST(processor, completes_a_shard_that_ends) {
  kclxx::testing::daemon daemon(make_processor());
  daemon.initialize().deliver({{{literal}}}).end_shard();
  EXPECT_EQ(daemon.persisted(), kclxx::sequence_position("SHARD_END")) << daemon;
}
