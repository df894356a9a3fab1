// SPDX-License-Identifier: Apache-2.0
#include "io/task_thread.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace kclxx::io {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

TEST_CASE("tasks run in the order of their posting, on another thread", "[task_thread]") {
  std::vector<int> ran;
  bool is_another_thread = true;
  task_thread tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.post([&, i, caller = std::this_thread::get_id()] {
      ran.push_back(i);
      is_another_thread &= caller != std::this_thread::get_id();
    });
  }
  REQUIRE(tasks.drain(clock::time_point::max()));
  REQUIRE(ran.size() == 100);
  CHECK(std::is_sorted(ran.begin(), ran.end()));
  CHECK(is_another_thread);
}

TEST_CASE("the thread ends when it is told to, and has run all tasks", "[task_thread]") {
  struct at_thread_end {
    ~at_thread_end() { ended->set_value(); }
    std::promise<void>* ended;
  };
  const int how = GENERATE(0, 1, 2);
  std::promise<void> ended;
  auto tasks = std::make_unique<task_thread>();
  int count = 0;
  tasks->post([&] {
    static thread_local at_thread_end of_thread;
    of_thread.ended = &ended;
    ++count;
  });
  if (how == 2) REQUIRE(tasks->drain(clock::time_point::max()));  // abandon() would drop it
  if (how == 0) tasks.reset();
  if (how == 1) tasks->end();
  if (how == 2) tasks->abandon();
  CHECK(ended.get_future().wait_for(20s) == std::future_status::ready);
  CHECK(count == 1);
}

TEST_CASE("draining waits for the task that is running, until its deadline", "[task_thread]") {
  std::promise<void> release;
  task_thread tasks;
  CHECK(tasks.drain(clock::now()));
  tasks.post([until = release.get_future().share()] { until.wait(); });
  CHECK_FALSE(tasks.drain(clock::now() + 20ms));
  release.set_value();
  CHECK(tasks.drain(clock::time_point::max()));
}

TEST_CASE("a task may post another, which draining waits for too", "[task_thread]") {
  bool has_run = false;
  task_thread tasks;
  tasks.post([&] { tasks.post([&] { has_run = true; }); });
  CHECK(tasks.drain(clock::time_point::max()));
  CHECK(has_run);
}

TEST_CASE("what was posted before the end is still run, without waiting for it", "[task_thread]") {
  std::promise<void> release;
  std::promise<void> ran;
  {
    task_thread tasks;
    tasks.post([until = release.get_future().share()] { until.wait(); });
    tasks.post([&] { ran.set_value(); });
  }
  release.set_value();
  CHECK(ran.get_future().wait_for(20s) == std::future_status::ready);
}

TEST_CASE("after abandon only the task that is running ends", "[task_thread]") {
  std::promise<void> release;
  std::promise<void> has_begun;
  auto witness = std::make_shared<int>(0);
  task_thread tasks;
  tasks.post([&, until = release.get_future().share()] {
    has_begun.set_value();
    until.wait();
  });
  tasks.post([witness] { ++*witness; });
  has_begun.get_future().wait();
  tasks.abandon();
  tasks.post([witness] { ++*witness; });
  release.set_value();
  CHECK(tasks.drain(clock::time_point::max()));
  CHECK(*witness == 0);
  CHECK(witness.use_count() == 1);
}

}  // namespace kclxx::io
