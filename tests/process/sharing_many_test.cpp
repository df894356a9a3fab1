// SPDX-License-Identifier: Apache-2.0
// kclxx-share: 256 random shards in one process.
#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "process/shared_machine.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;

namespace {

/// What a shard of the test below goes through.
enum class life {
  idle,
  lease_lost,
  shard_ended,
  end_failed,
  threw,
  garbage,
  half_line,
  in_callback,
  stuck,
  killed,
  count
};

class random_life {
 public:
  random_life(scripted_daemon& shard, unsigned seed)
      : shard_(shard),
        random_(seed),
        kind_(static_cast<life>(seed % static_cast<unsigned>(life::count))) {}

  [[nodiscard]] life kind() const { return kind_; }

  /// Errors: std::runtime_error when its launcher leaves with another status than it has to.
  void run() {
    for (auto batches = random_() % 6; batches > 0; --batches) batch();
    int status_after_input = 0;
    switch (kind_) {
      case life::idle:
        break;
      case life::lease_lost:
        shard_.lease_lost();
        shard_.expect_status("leaseLost");
        break;
      case life::shard_ended:
        shard_.shard_ended();
        shard_.expect_null_checkpoint();
        shard_.answer("ThrottlingException");
        shard_.expect_null_checkpoint();
        shard_.answer();
        shard_.expect_status("shardEnded");
        break;
      case life::end_failed:
        shard_.shard_ended();
        shard_.expect_null_checkpoint();
        shard_.answer("InvalidStateException");
        return must_leave(14);
      case life::threw:
        shard_.records({"throw"}, position_);
        return must_leave(10);
      case life::garbage:
        shard_.send("noise");
        return must_leave(11);
      case life::half_line:
        shard_.send_raw(R"({"action":"processRec)");
        status_after_input = 12;
        break;
      case life::in_callback:
        shard_.records({"wait for stop"}, position_);
        status_after_input = 12;
        break;
      case life::stuck:
        shard_.records({"sleep"}, position_);
        status_after_input = 13;
        break;
      default:
        shard_.records({random_() % 2 == 0 ? "wait for stop" : "a"}, position_);
        return shard_.kill();
    }
    shard_.close_input();
    must_leave(status_after_input);
  }

 private:
  void must_leave(int status) {
    const int seen = shard_.wait_exit(60s);
    if (seen != status) {
      throw std::runtime_error(std::to_string(seen) + " in place of " + std::to_string(status));
    }
  }
  // Until its status; some checkpoints fail first.
  void batch() {
    shard_.records({"a", random_() % 2 == 0 ? "async" : "async with a handler"}, position_);
    position_ += 2;
    while (!contains(shard_.next_line(), "status")) {
      shard_.answer(random_() % 3 == 0 ? "ThrottlingException" : "");
    }
  }

  scripted_daemon& shard_;
  std::mt19937 random_;
  life kind_;
  std::uint64_t position_ = 1;
};

}  // namespace

TEST_CASE("256 shards in one process live and end as they would alone", "[sharing][many]") {
  constexpr std::size_t shards = 256;
  constexpr std::size_t threads = 8;
  const machine box;
  const words command{child, "manual", "at_once", "fast_retry", "short_grace"};
  // The first report of ThreadSanitizer ends the resident, and so all statuses differ.
  const words environment{"TSAN_OPTIONS=halt_on_error=1"};
  const launched first = box.initialized("first", command, environment);
  const footprint before(box.process_of("first"));

  std::vector<launched> all;
  std::vector<std::string> failures(shards);
  std::size_t stuck = 0;
  for (unsigned i = 0; i < shards; ++i) {
    all.push_back(box.start("stream-" + std::to_string(i), command, environment));
    if (random_life(*all.back(), i).kind() == life::stuck) ++stuck;
  }
  for (const launched& launcher : all) start(*launcher);
  std::vector<std::thread> daemons;
  std::atomic<std::size_t> at_work = threads;
  for (std::size_t t = 0; t < threads; ++t) {
    daemons.emplace_back([&, t] {
      for (std::size_t i = t; i < shards; i += threads) {
        try {
          random_life(*all[i], static_cast<unsigned>(i)).run();
        } catch (const std::exception& error) {
          failures[i] = error.what();
        }
      }
      --at_work;
    });
  }
  // A daemon reads stderr all the time, and here all shards print to this one.
  const auto all_have_ended = [&] {
    static_cast<void>(first->stderr_so_far());
    return at_work == 0;
  };
  CHECK(eventually(all_have_ended, 100s));
  for (std::thread& daemon : daemons) daemon.join();
  INFO(first->stderr_so_far());
  CHECK(failures == std::vector<std::string>(shards));
  CHECK(box.started().size() == 1);
  before.must_come_back(stuck);
  must_be_served(*first);
}
