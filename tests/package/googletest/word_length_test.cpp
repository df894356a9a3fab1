// SPDX-License-Identifier: Apache-2.0
// The test kit in a GoogleTest program, which refers to all of the library: with --child it serves
// a daemon on stdin.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

namespace {

using kclxx::sequence_position;

/// Finds the longest record, and waits for each checkpoint.
class word_length : public kclxx::record_processor {
 public:
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    for (const kclxx::record& one : batch) {
      if (one.data().empty()) throw std::invalid_argument("an empty word");
      longest = std::max(longest, one.data().size());
    }
    checkpointer.checkpoint();
  }

  std::size_t longest = 0;
};

class word_length_test : public ::testing::Test {
 protected:
  kclxx::testing::worker worker{[] { return std::make_unique<word_length>(); }};
};

TEST_F(word_length_test, waits_through_a_throttled_checkpoint) {
  const auto before = worker.initialize().now();
  worker.fail_next_checkpoint("ThrottlingException", 3).deliver({"one", "three"});
  EXPECT_EQ(worker.processor<word_length>().longest, 5U);
  EXPECT_EQ(worker.checkpoints(), std::vector{sequence_position("2")}) << worker;
  EXPECT_GT(worker.now(), before);
}

TEST_F(word_length_test, fails_on_an_empty_word) {
  worker.initialize().deliver({"one"}).deliver({"two", ""});
  EXPECT_EQ(worker.exit_status(), kclxx::exit_status::callback_failed) << worker;
  EXPECT_THROW(std::rethrow_exception(worker.thrown()), std::invalid_argument);
  EXPECT_EQ(worker.persisted(), sequence_position("1"));
}

TEST_F(word_length_test, the_error_categories_are_the_library_s) {
  worker.initialize().fail_next_checkpoint("InvalidStateException").deliver({"one"});
  try {
    std::rethrow_exception(worker.thrown());
  } catch (const kclxx::checkpoint_error& error) {
    EXPECT_EQ(error.code(), kclxx::checkpoint_errc::invalid_state);
    EXPECT_EQ(error.name(), "InvalidStateException");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--child") {
    return kclxx::run<word_length>();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
