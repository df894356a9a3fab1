// SPDX-License-Identifier: Apache-2.0
// Sessions over socket pairs in this process, with real threads.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <pthread.h>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <kclxx/kclxx.hpp>

#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"
#include "support/run_options.hpp"
#include "unit/runtime/served_shard.hpp"

namespace kclxx::runtime {

namespace {

using namespace std::chrono_literals;

/// Before the first callback that gets it.
checkpointer checkpointer_of(const shard_context& shard) {
  return detail::service_access::handle_of<checkpointer>(detail::service_access::of(shard));
}

using test::awaited_count;
using test::count_of;
using test::eventually;
using test::manual;
using test::served_shard;

/// Checks that its records are its shard's, and checkpoints each batch.
class careful : public record_processor {
 public:
  careful(const shard_context& context, std::atomic<int>& handled, std::future<void> stuck_until)
      : shard_id_(context.shard_id()), handled_(handled), stuck_until_(std::move(stuck_until)) {}
  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    for (const record& entry : batch) {
      if (entry.data() == "throw") throw std::runtime_error("as told");
      if (entry.data() == "stuck") return stuck_until_.wait();
      if (entry.data() != shard_id_) throw std::runtime_error("a record of another shard");
    }
    checkpointer.async_checkpoint(batch, [&handled = handled_](std::error_code result) {
      if (!result) ++handled;
    });
  }

 private:
  std::string shard_id_;
  std::atomic<int>& handled_;
  std::future<void> stuck_until_;
};

}  // namespace

TEST_CASE("64 sessions run in one process; one that throws and one that is stuck harm no other",
          "[serve][P53][P57]") {
  constexpr std::size_t sessions = 64;
  constexpr int batches = 20;
  constexpr std::size_t thrower = 7;
  constexpr std::size_t stuck = 11;
  std::thread([] {}).join();  // ThreadSanitizer starts one of its own with the first
  const auto threads_before = count_of("/proc/self/task");
  const auto descriptors_before = count_of("/proc/self/fd");
  std::vector<exit_status> statuses(sessions);
  std::vector<std::string> failures(sessions);
  std::vector<std::atomic<int>> handled(sessions);
  std::promise<void> release;
  {
    std::vector<std::thread> daemons;
    for (std::size_t i = 0; i < sessions; ++i) {
      daemons.emplace_back(
          [&, i, released = i == stuck ? release.get_future() : std::future<void>()]() mutable {
            const std::string shard_id = "shard-" + std::to_string(i);
            test::session_options options = manual();
            if (i == stuck) options.grace_time = 100ms;
            served_shard shard(
                [&](const shard_context& context) {
                  return std::make_unique<careful>(context, handled[i], std::move(released));
                },
                options);
            try {
              shard.initialize(shard_id);
              for (unsigned batch = 1; batch <= batches; ++batch) {
                shard.process({shard_id, shard_id}, 2 * batch);
              }
              if (i == thrower) shard.records({"throw"}, 1000);
              if (i == stuck) shard.records({"stuck"}, 1000);
              if (i != thrower) shard.close();
              statuses[i] = shard.status();
            } catch (const std::exception& error) {
              failures[i] = error.what();
            }
          });
    }
    for (std::thread& thread : daemons) thread.join();
  }
  for (std::size_t i = 0; i < sessions; ++i) {
    CAPTURE(i);
    CHECK(failures[i].empty());
    CHECK(handled[i] == batches);
    CHECK(statuses[i] == (i == thrower ? exit_status::callback_failed
                          : i == stuck ? exit_status::callback_stuck
                                       : exit_status::ok));
  }
  CHECK(count_of("/proc/self/task") > threads_before);  // the one that is stuck
  release.set_value();
  CHECK(eventually([&] { return count_of("/proc/self/task") <= threads_before; }));
  CHECK(eventually([&] { return count_of("/proc/self/fd") == descriptors_before; }));
}

#ifndef KCLXX_IS_SANITIZED  // a sanitizer has a pthread_create of its own

namespace {
std::atomic<bool> has_threads = true;
}  // namespace

/// In place of the system's, for std::thread.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return has_threads ? real(thread, attributes, start, argument) : EAGAIN;
}

TEST_CASE("without a thread for it the process ends", "[serve]") {
  const auto copy = test::in_forked_copy([] {
    served_shard shard(
        [](const record_batch& batch, const checkpointer& checkpointer) {
          has_threads = false;
          checkpointer.async_checkpoint(batch, [](std::error_code) {});
        },
        manual());
    shard.initialize("shard-0");
    shard.process({"a"}, 1);
    return static_cast<int>(shard.end());
  });
  CHECK(copy.status == 128 + SIGABRT);
}

TEST_CASE("user code that closes descriptors of the library ends the process", "[serve]") {
  const auto copy = test::in_forked_copy([] {
    served_shard shard([](const record_batch&) {
      for (int fd = 3; fd < 1024; ++fd) {
        std::error_code ec;
        const auto what = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ec);
        if (!ec && what.string().starts_with("anon_inode:")) ::close(fd);
      }
    });
    shard.initialize("shard-0");
    shard.process({"a"}, 1);
    return static_cast<int>(shard.end());
  });
  CHECK(copy.status == 128 + SIGABRT);
}

#endif

namespace {

class record_processor_of_nothing : public record_processor {
 public:
  void process_records(record_batch, const checkpointer&) override {}
};

/// Gives the shard's checkpointer away.
processor_factory lender(std::promise<checkpointer>& lent) {
  return [&lent](const shard_context& context) {
    lent.set_value(checkpointer_of(context));
    return std::make_unique<record_processor_of_nothing>();
  };
}

thread_local bool is_in_call = false;

/// What the handlers of one thread have seen.
struct calls {
  static constexpr int most = 50;
  std::array<std::atomic<int>, most> handled{};
  std::atomic<int> inside{0};
};

void request(const checkpointer& checkpointer, const checkpoint_target& target,
             checkpoint_handler handler) {
  is_in_call = true;
  checkpointer.async_checkpoint(target, std::move(handler));
  is_in_call = false;
}

}  // namespace

TEST_CASE(
    "100 threads call async_checkpoint during deliveries: each handler is called once, never "
    "inside the call, and positions never go backward",
    "[serve][P36]") {
  constexpr int threads = 100;
  std::promise<checkpointer> lent;
  served_shard shard(lender(lent), manual());
  shard.initialize("shard-0");
  const checkpointer checkpointer = lent.get_future().get();

  std::atomic<std::uint64_t> delivered{1};
  std::vector<calls> of_thread(threads);
  awaited_count handled_in_all;
  std::atomic<int> running = threads;
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      std::mt19937 random(i);
      calls& mine = of_thread[i];
      for (std::atomic<int>& handled : mine.handled) {
        const std::uint64_t so_far = delivered;
        const std::uint64_t number = 1 + random() % so_far;
        checkpoint_target target;
        if (random() % 4 != 0) target = sequence_position(std::to_string(number));
        request(checkpointer, target,
                [&mine, &handled, &handled_in_all, checkpointer, target](std::error_code) {
                  mine.inside += is_in_call ? 1 : 0;
                  // Under a lock this would never return.
                  request(checkpointer, target,
                          [&mine, &handled, &handled_in_all](std::error_code) {
                            mine.inside += is_in_call ? 1 : 0;
                            ++handled;
                            ++handled_in_all;
                          });
                });
        if (random() % 8 == 0) delivered.wait(so_far);  // until the next batch
      }
      --running;
    });
  }
  std::uint64_t last = 0;
  bool is_ascending = true;
  for (std::uint64_t batch = 1; batch <= 100 || running > 0; ++batch) {
    shard.records({"a", "b", "c"}, 3 * batch);
    for (const std::uint64_t position : shard.answer_until_status()) {
      is_ascending &= position > last && position <= 3 * batch + 2;
      last = position;
    }
    delivered = 3 * batch + 2;
    delivered.notify_all();
  }
  for (std::thread& thread : all) thread.join();
  CHECK(shard.end() == exit_status::ok);
  CHECK(is_ascending);
  CHECK(last > 0);
  CHECK(handled_in_all.await(threads * calls::most));
  for (const calls& seen : of_thread) {
    CHECK(seen.inside == 0);
    for (const auto& handled : seen.handled) CHECK(handled == 1);
  }
}

namespace {

/// Calls the library when it is destroyed, as a writer does that flushes and reports it.
struct calls_in_destructor {
  const shard_context& shard;
  detail::shard_service::timer_id other = 0;
  explicit calls_in_destructor(const shard_context& its_shard) : shard(its_shard) {}
  calls_in_destructor(const calls_in_destructor&) = delete;
  calls_in_destructor& operator=(const calls_in_destructor&) = delete;
  ~calls_in_destructor() {
    shard.log(log_level::warning, "destroyed");
    shard.cancel(other);
  }
};

}  // namespace

TEST_CASE("what() of an exception may use the shard", "[serve][P53]") {
  struct asking final : std::exception {
    explicit asking(const shard_context& context) : shard(&context) {}
    [[nodiscard]] const char* what() const noexcept override {
      checkpointer_of(*shard).async_checkpoint();  // it takes the session's lock
      return "as told";
    }
    const shard_context* shard;
  };
  const bool is_timer = GENERATE(true, false);
  CAPTURE(is_timer);
  served_shard shard([&](const shard_context& context) {
    if (is_timer) {
      context.after(0ms, [&context] { throw asking(context); });
    } else {
      context.fail(std::make_exception_ptr(asking(context)));
    }
    return std::make_unique<record_processor_of_nothing>();
  });
  shard.send(R"({"action":"initialize","shardId":"shard-0"})");
  CHECK(shard.status() == exit_status::callback_failed);
  CHECK(shard.log().await("failed: as told"));
}

TEST_CASE("a log function that does not return holds up no checkpoint handler", "[serve]") {
  std::promise<void> released;
  awaited_count entered;
  test::session_options options = manual();
  options.log = [&, wait = released.get_future().share()](const log_entry&) {
    ++entered;
    wait.wait();
  };
  awaited_count persisted;
  served_shard shard(
      [&](const record_batch& batch, const checkpointer& checkpointer) {
        const auto context = detail::service_access::make<shard_context>(
            {}, detail::service_access::of(checkpointer));
        for (int i = 0; i < 3; ++i) context->log(log_level::warning, "slow");
        checkpointer.async_checkpoint(batch, [&](std::error_code error) {
          if (!error) ++persisted;
        });
      },
      options);
  shard.initialize("shard-0");
  shard.records({"a"}, 1);
  CHECK(shard.answer_until_status() == std::vector<std::uint64_t>{1});
  CHECK(persisted.await(1));
  CHECK(entered.await(1));
  CHECK(entered == 1);
  released.set_value();
  CHECK(shard.end() == exit_status::ok);
  CHECK(entered == 3);
}

TEST_CASE("the log function is not called after serve has returned", "[serve]") {
  std::shared_ptr<detail::shard_service> kept;
  auto calls = std::make_shared<std::atomic<int>>(0);
  {
    served_shard shard(
        [&](const shard_context& context) {
          kept = detail::service_access::of(context);
          kept->log(log_level::warning, "early", std::nullopt);
          return std::make_unique<record_processor_of_nothing>();
        },
        run_options{.log = [calls](const log_entry&) { ++*calls; }});
    shard.initialize("shard-0");
    CHECK(shard.end() == exit_status::ok);
  }
  CHECK(*calls == 1);
  kept->log(log_level::warning, "late", std::nullopt);
  kept.reset();
  CHECK(eventually([&] { return calls.use_count() == 1; }));  // the function is gone
  CHECK(*calls == 1);
}

TEST_CASE("a callback that follows the decision to stop sees the stop", "[serve]") {
  class observing final : public record_processor {
   public:
    observing(const shard_context& shard, std::promise<bool>& seen)
        : token_(shard.stop_token()), seen_(seen) {}
    void process_records(record_batch, const checkpointer&) override {}
    void lease_lost() override { seen_.set_value(token_.stop_requested()); }

   private:
    std::stop_token token_;
    std::promise<bool>& seen_;
  };
  std::promise<bool> seen;
  served_shard shard(
      [&](const shard_context& context) { return std::make_unique<observing>(context, seen); });
  shard.initialize("shard-0");
  shard.send(R"({"action":"leaseLost"})");
  shard.expect_status("leaseLost");
  CHECK(seen.get_future().get());
  CHECK(shard.end() == exit_status::ok);
}

TEST_CASE("a handler that is given in after the session's end gets daemon_gone", "[serve]") {
  std::promise<checkpointer> lent;
  std::optional<checkpointer> checkpointer;
  {
    served_shard shard(lender(lent));
    shard.initialize("shard-0");
    checkpointer = lent.get_future().get();
    CHECK(shard.end() == exit_status::ok);
  }
  std::promise<std::error_code> result;
  checkpointer->async_checkpoint({}, [&](std::error_code error) { result.set_value(error); });
  checkpointer.reset();  // the last that holds the session
  auto future = result.get_future();
  REQUIRE(future.wait_for(20s) == std::future_status::ready);
  CHECK(future.get() == errc::daemon_gone);
}

TEST_CASE("an input that is reset while idle ends the session with one line", "[serve][P66]") {
  served_shard shard([](record_batch) {});
  shard.send(R"({"action":"initialize","shardId":"shard-0"})");
  shard.await_unread();  // the status, which is lost
  CHECK(shard.end() == exit_status::daemon_gone);
  const auto logged = shard.log().entries();
  REQUIRE(logged.size() == 1);
  CHECK(logged.front() == log_entry{log_level::error, "shard-0",
                                    "cannot read from the daemon: Connection reset by peer"});
}

TEST_CASE("serve refuses an input that is no descriptor", "[serve]") {
  std::vector<log_entry> logged;
  const run_options options{.log = [&](const log_entry& entry) { logged.push_back(entry); }};
  CHECK(serve(
            {-1, -1}, [](record_batch) {}, options) == exit_status::start_failed);
  CHECK(logged.size() == 1);
}

TEST_CASE("serve refuses a factory that is an empty function", "[serve]") {
  std::vector<log_entry> logged;
  const run_options options{.log = [&](const log_entry& entry) { logged.push_back(entry); }};
  using factory = std::unique_ptr<record_processor>(const shard_context&);
  const auto empty = GENERATE(processor_factory(std::function<void(record_batch)>()),
                              processor_factory(std::function<factory>()),
                              processor_factory(static_cast<factory*>(nullptr)));
  CHECK_FALSE(empty.is_valid());
  CHECK(serve({}, empty, options) == exit_status::start_failed);
  REQUIRE(logged.size() == 1);
  CHECK(logged.front().text ==
        "cannot serve the daemon: the processor factory is an empty function");
}

TEST_CASE("a timer's function may call the library from its destructor", "[serve][timer]") {
  const auto [what, last_action] = GENERATE(table<std::string, std::string>({
      {"its only call has returned", ""},
      {"it is cancelled", ""},
      {"the lease is lost", R"({"action":"leaseLost"})"},
      {"the session ends", ""},
  }));
  CAPTURE(what);
  awaited_count runs;
  served_shard shard([&, which = what](const shard_context& context) {
    const bool is_once = which == "its only call has returned";
    auto owned = std::make_shared<calls_in_destructor>(context);
    const auto function = [&runs, owned = std::move(owned)] { ++runs; };
    const auto timer = is_once ? context.after(0ms, function) : context.every(1h, function);
    if (which == "it is cancelled") context.cancel(timer);
    return std::make_unique<record_processor_of_nothing>();
  });
  shard.initialize("shard-0");
  if (what == "its only call has returned") CHECK(runs.await(1));
  if (!last_action.empty()) {
    shard.send(last_action);
    shard.expect_status("leaseLost");
  } else {
    shard.process({"a"}, 1);
  }
  CHECK(shard.end() == exit_status::ok);
  CHECK(shard.log().entries().size() == 1);
}

}  // namespace kclxx::runtime
