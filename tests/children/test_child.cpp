// SPDX-License-Identifier: Apache-2.0
// The child of the process tests. What a record's text says, the callback does.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <kclxx/kclxx.hpp>

namespace {

using namespace std::chrono_literals;

void say(const std::string& text) { std::cerr << text << std::endl; }

class obedient : public kclxx::record_processor {
 public:
  ~obedient() override {
    for (std::thread& thread : threads_) thread.join();
    if (hangs_in_destructor_) std::this_thread::sleep_for(1h);
  }

  void initialize(const kclxx::shard_context& context) override {
    context_ = &context;
    say("shard " + context.shard_id() + " of " + context.stream_name().value_or("?"));
    if (const char* what = std::getenv("IN_INITIALIZE")) obey(what, nullptr);
  }
  void process_records(kclxx::record_batch batch, kclxx::checkpointer& checkpointer) override {
    for (const kclxx::record& record : batch) obey(std::string(record.data()), &checkpointer);
    say("batch of " + std::to_string(batch.size()));
    ++batches_;
  }
  void lease_lost() override {
    say("lease lost");
    if (const char* what = std::getenv("IN_LEASE_LOST")) obey(what, nullptr);
  }
  void shard_ended(kclxx::checkpointer& checkpointer) override {
    say("shard ended");
    if (const char* what = std::getenv("IN_SHARD_ENDED")) obey(what, &checkpointer);
  }
  void shutdown_requested(kclxx::checkpointer&) override { say("shutdown requested"); }

 private:
  void obey(const std::string& what, kclxx::checkpointer* checkpointer) {
    if (what == "printf") {
      std::printf("{\"action\":\"status\",\"responseFor\":\"printf\"}\n");
    } else if (what == "cout") {
      std::cout << "partial text without a newline" << std::flush;
    } else if (what == "write to 1") {
      if (::write(1, "raw", 3) != 3) say("write failed");
    } else if (what == "run a program") {
      // Its stdin, its signals, and all the descriptors that it got.
      if (std::system("cat; echo stdin ended >&2; grep -E 'Sig(Ign|Blk)' /proc/self/status >&2; "
                      "ls -l /proc/self/fd >&2") != 0) {
        say("system failed");
      }
    } else if (what == "throw") {
      throw std::runtime_error("as told");
    } else if (what == "throw 42") {
      throw 42;
    } else if (what == "sleep") {
      std::this_thread::sleep_for(1h);
    } else if (what == "wait for stop") {
      while (!context_->stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
      say("stopped");
    } else if (what == "checkpoint") {
      try {
        checkpointer->checkpoint();
        say("persisted");
      } catch (const kclxx::checkpoint_error& error) {
        say("checkpoint failed: " + std::string(error.what()) +
            " name=" + std::string(error.name()));
      }
    } else if (what == "request") {
      if (!checkpointer->request()) say("too late");
    } else if (what == "last") {
      std::this_thread::sleep_for(8ms);  // longer than the callback's thread stays the reader
    } else if (what == "checkpoint from a thread") {
      threads_.emplace_back([handle = *checkpointer]() mutable {
        std::error_code ec;
        handle.checkpoint(ec);
        say("thread: " + (ec ? ec.message() : std::string("persisted")));
      });
      std::this_thread::sleep_for(100ms);
    } else if (what == "checkpoint with a deadline") {
      threads_.emplace_back([this, handle = *checkpointer]() mutable {
        wait_for_the_return();
        std::error_code ec;
        handle.checkpoint_until(context_->now() + 50ms, ec);
        say("thread: " + (ec ? ec.message() : std::string("persisted")));
      });
    } else if (what == "checkpoint between callbacks") {
      threads_.emplace_back([this, handle = *checkpointer]() mutable {
        wait_for_the_return();
        say("thread waits");
        std::error_code ec;
        handle.checkpoint(ec);
        say("thread: " + (ec ? ec.message() : std::string("persisted")));
      });
    } else if (what == "request from 8 threads") {
      request_from_threads(*checkpointer);
    } else if (what == "checkpoint under a lock") {
      // What many programs do: the stop_callback wants what the callback holds.
      at_stop_.emplace(context_->stop_token(), [this] {
        const std::lock_guard lock(mutex_);
        say("stop heard");
      });
      const std::lock_guard lock(mutex_);
      obey("checkpoint", checkpointer);
    } else if (what == "checkpoint when stopped") {
      at_stop_.emplace(context_->stop_token(), [handle = *checkpointer]() mutable {
        std::error_code ec;
        handle.checkpoint(ec);
        say("at stop: " + (ec ? ec.message() : std::string("persisted")));
      });
    } else if (what == "hang in the destructor") {
      hangs_in_destructor_ = true;
    }
  }

  // Called in a thread that a batch started: until its callback has returned, and a little more.
  void wait_for_the_return() {
    while (batches_ == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(100ms);
  }

  // Each requests the positions 1 to 1000 in an order of its own.
  void request_from_threads(kclxx::checkpointer& checkpointer) {
    std::vector<std::thread> all;
    for (unsigned seed = 0; seed < 8; ++seed) {
      all.emplace_back([seed, handle = checkpointer]() mutable {
        std::mt19937 random(seed);
        for (int i = 0; i < 1000; ++i) {
          handle.request(kclxx::sequence_position(std::to_string(random() % 1000 + 1)));
        }
      });
    }
    for (std::thread& one : all) one.join();
    checkpointer.request(kclxx::sequence_position("1000"));
  }

  const kclxx::shard_context* context_ = nullptr;
  std::vector<std::thread> threads_;
  std::atomic<int> batches_ = 0;
  bool hangs_in_destructor_ = false;
  std::mutex mutex_;
  std::optional<std::stop_callback<std::function<void()>>> at_stop_;
};

}  // namespace

int main(int argc, char** argv) {
  kclxx::run_options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "by_request") options.complete = kclxx::complete_when::by_request;
    if (argument == "every_batch") options.checkpoint_interval = 0ms;
    if (argument == "short_grace") options.grace_time = 300ms;
    if (argument == "small_lines") options.max_line_length = 1000;
    if (argument == "own_log") {
      options.log = [](kclxx::log_level level, std::string_view text) {
        say("own log " + std::to_string(static_cast<int>(level)) + ": " + std::string(text));
      };
    }
    if (argument == "fast_retry") options.retry = {1ms, 2ms, 3};
  }
  std::printf("printed before run, not flushed");
  return kclxx::run([] { return std::make_unique<obedient>(); }, options);
}
