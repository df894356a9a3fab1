#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>

#include <kclxx/archive/testing.hpp>
#include <kclxx/testing/worker.hpp>

#include "processor.hpp"

using kclxx::archive::testing::memory_store;

namespace {

const std::string event_text = R"({{example}})";

std::size_t count_files(const memory_store& store) {
  std::size_t count = 0;
  for (const auto& [name, content] : store.objects()) {
    if (!name.starts_with("_kclxx")) ++count;
  }
  return count;
}

}  // namespace

// The test kit plays the daemon, in virtual time, so the tests need no network and no S3.
TEST(archive, has_the_events_of_an_hour_in_one_file) {
  const auto store = std::make_shared<memory_store>();
  kclxx::testing::worker worker(make_processor(store));
  worker.initialize().deliver({event_text, event_text}).request_shutdown();
  EXPECT_EQ(worker.persisted(), kclxx::sequence_position("2")) << worker;
  EXPECT_EQ(count_files(*store), 1U);
}

TEST(archive, parks_what_is_no_event) {
  const auto store = std::make_shared<memory_store>();
  kclxx::testing::worker worker(make_processor(store));
  worker.initialize().deliver({"no JSON", event_text}).end_shard();
  EXPECT_EQ(store->list("_kclxx_parked").size(), 1U) << worker;
  EXPECT_EQ(count_files(*store), 1U);
}

TEST(archive, has_an_event_once_whenever_the_worker_crashes) {
  std::optional<kclxx::testing::worker> worker;
  kclxx::archive::testing::at_each_step([&] { worker->crash(); },
                                        [&](const std::shared_ptr<memory_store>& store) {
                                          worker.emplace(make_processor(store));
                                          worker->initialize().deliver({event_text}).end_shard();
                                          if (!worker->exit_status()) worker->resume().end_shard();
                                          EXPECT_EQ(count_files(*store), 1U) << *worker;
                                        });
}
