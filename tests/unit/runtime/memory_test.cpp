// SPDX-License-Identifier: Apache-2.0
// Sessions in which an allocation fails.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <kclxx/kclxx.hpp>

#include "support/allocations.hpp"
#include "support/catch.hpp"
#include "support/forked.hpp"
#include "support/text.hpp"
#include "unit/runtime/served_shard.hpp"

namespace {

/// Of all threads but the test's the allocation with this number from now on; 0: none.
std::atomic<int> left = 0;
const std::thread::id test_thread = std::this_thread::get_id();

bool is_next(std::size_t = 0) {
  return left > 0 && std::this_thread::get_id() != test_thread && --left == 0;
}

}  // namespace

/// Asio's.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  void* memory = nullptr;
  if (is_next() || ::posix_memalign(&memory, alignment, size) != 0) return nullptr;
  return memory;
}

namespace kclxx {

namespace {

using namespace std::chrono_literals;

/// A session in which an allocation fails.
class served : public test::served_shard {
 public:
  explicit served(processor_factory make_processor)
      : served_shard(std::move(make_processor), {.mode = checkpoint_mode::manual,
                                                 .checkpoint_interval = 0ms,
                                                 .grace_time = 50ms,
                                                 .log = [](const log_entry&) {}}) {}
  void end_input() const { ::shutdown(daemon_, SHUT_WR); }
  /// Answers checkpoints. False when neither the status comes nor the session ends.
  bool answer_until_status_or_end() {
    for (int i = 0; i < 6000 && status_.wait_for(0s) != std::future_status::ready; ++i) {
      if (test::contains(read_, "\"status\"")) {
        read_.clear();
        return true;
      }
      if (test::contains(read_, "\"checkpoint\"") && read_.ends_with('\n')) {
        send(read_.substr(0, read_.size() - 1));  // an answer has the same fields
        read_.clear();
      }
      pollfd ready{daemon_, POLLIN, 0};
      std::array<char, 4096> bytes{};
      if (::poll(&ready, 1, 10) != 1) continue;
      const ssize_t n = ::read(daemon_, bytes.data(), bytes.size());
      if (n > 0) read_.append(bytes.data(), static_cast<std::size_t>(n));
    }
    return status_.wait_for(0s) == std::future_status::ready;
  }
  [[nodiscard]] bool ends() const { return status_.wait_for(60s) == std::future_status::ready; }
};

constexpr const char* initialize = R"({"action":"initialize","shardId":"shard-0"})";

/// As long as one can be here: a line has no room where a shorter one was.
constexpr std::uint64_t sequence_number = 1'000'000'000'000'000'000;

/// Is told in a callback to throw, or to wait for the stop.
class waiting : public record_processor {
 public:
  waiting(const shard_context& context, std::promise<void>& entered, std::future<bool> throws)
      : context_(context), entered_(entered), throws_(std::move(throws)) {}
  void process_records(record_batch, const checkpointer&) override {
    entered_.set_value();
    if (throws_.get()) throw std::runtime_error("as told");
    context_.sleep_for(1h);
  }

 private:
  const shard_context& context_;
  std::promise<void>& entered_;
  std::future<bool> throws_;
};

constexpr int all_succeeded = 3;

/// Runs `body` in forked copies, with 1, 2 and so on as `left`, until it leaves as all_succeeded.
void each_allocation(const std::function<int(int)>& body) {
  test::does_allocation_fail = is_next;
  for (int number = 1, status = 0; status != all_succeeded; ++number) {
    CAPTURE(number);
    status = test::in_forked_copy([&] { return body(number); }).status;
    REQUIRE((status == 0 || (status == all_succeeded && number > 1)));
  }
}

}  // namespace

TEST_CASE("a session ends, whichever allocation fails while it does", "[serve]") {
  const bool is_in_callback = GENERATE(false, true);
  const std::string end = GENERATE("a bad line", "the end of the input", "an exception");
  if (end == "an exception" && !is_in_callback) return;
  CAPTURE(is_in_callback, end);
  each_allocation([&](int number) {
    std::promise<void> entered;
    std::promise<bool> throws;
    served shard([&](const shard_context& context) {
      return std::make_unique<waiting>(context, entered, throws.get_future());
    });
    shard.send(initialize);
    if (!shard.answer_until_status_or_end()) return 1;
    if (is_in_callback) {
      shard.records({"a"}, sequence_number);
      entered.get_future().wait();
    }
    left = number;
    throws.set_value(end == "an exception");
    if (end == "a bad line") shard.send("no message");
    if (end == "the end of the input") shard.end_input();
    const bool has_ended = shard.ends();
    ::_exit(!has_ended ? 2 : left > 0 ? all_succeeded : 0);
    return 0;
  });
}

TEST_CASE("a checkpoint that is requested without memory leaves no action open for ever",
          "[serve]") {
  each_allocation([](int number) {
    bool is_reached = false;
    served shard([&](const record_batch& batch, const checkpointer& checkpointer) {
      shard.await_long_callback();  // a request is sent at once
      left = number;
      try {
        checkpointer.async_checkpoint(batch[0], [](std::error_code) {});
      } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as told
      }
      is_reached = left == 0;
      left = 0;
      checkpointer.async_checkpoint(batch);  // waits for the answer to the first
    });
    shard.send(initialize);
    if (!shard.answer_until_status_or_end()) return 1;
    shard.records({"a", "b"}, sequence_number);
    if (!shard.answer_until_status_or_end()) return 2;
    shard.end_input();
    const bool has_ended = shard.ends();
    ::_exit(!has_ended ? 4 : is_reached ? 0 : all_succeeded);
    return 0;
  });
}

}  // namespace kclxx
