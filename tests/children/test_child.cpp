// SPDX-License-Identifier: Apache-2.0
// The child of the process tests. A record's text names what the callback does.
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <kclxx/kclxx.hpp>

namespace {

using namespace std::chrono_literals;

bool is_quiet() {
  static const bool is_set = std::getenv("QUIET") != nullptr;
  return is_set;
}

void say(const std::string& text) {
  if (!is_quiet()) std::cerr << text + "\n";
}

/// Appends a line to the file that JOURNAL names, if it is set. Several shards of a process do so.
void note(const std::string& text) {
  const char* const file = std::getenv("JOURNAL");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app) << std::to_string(::getpid()) + " " + text + "\n";
}

/// Metrics of all kinds, of which two are invalid.
std::vector<kclxx::own_metric> own_metrics(const kclxx::observer::shard_names&) {
  using type = kclxx::own_metric::metric_type;
  return {{"clicks_total",
           "Of a \\ and\na line.",
           type::counter,
           {{"page", "a \"quoted\"\nline \\"}},
           5},
          {"queue_depth", "Length of the queue.", type::gauge, {}, std::nan("")},
          {"bad name", "", type::gauge, {}, 1},
          {"queue_depth", "Length of the queue.", type::gauge, {{"empty", ""}}, 1}};
}

/// The mutex that the program's own log function locks.
std::mutex log_mutex;

/// A log function that notes its copies, from the first call on.
class noted_log {
 public:
  noted_log() = default;
  noted_log(const noted_log&) { note_later("log function copied"); }
  noted_log(noted_log&&) noexcept {}
  noted_log& operator=(const noted_log&) = delete;
  noted_log& operator=(noted_log&&) = delete;
  ~noted_log() { note_later("log function destroyed"); }
  void operator()(const kclxx::log_entry&) const {
    is_called_ = true;
    note_later("log function called");
  }

 private:
  static void note_later(const char* what) {
    if (is_called_) note(what);
  }
  static inline std::atomic<bool> is_called_ = false;
};

class obedient : public kclxx::record_processor {
 public:
  obedient(const kclxx::shard_context& context, kclxx::checkpoint_mode mode)
      : context_(context), mode_(mode) {
    const std::string shard =
        "shard " + context_.shard_id() + " of " + context_.stream_name().value_or("?");
    say(shard);
    note(shard);
  }
  ~obedient() override {
    for (std::thread& thread : threads_) thread.join();
    if (hangs_in_destructor_) std::this_thread::sleep_for(1h);
  }

  [[nodiscard]] kclxx::checkpoint_mode mode() const override { return mode_; }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    checkpointer_ = checkpointer;
    for (const kclxx::record& record : batch) {
      position_ = record.position();
      obey(std::string(record.data()), checkpointer);
    }
    say("batch of " + std::to_string(batch.size()));
    ++batches_;
  }
  void lease_lost() override { say("lease lost"); }
  void shutdown_requested(const kclxx::checkpointer&) override { say("shutdown requested"); }

 private:
  void obey(const std::string& what, const kclxx::checkpointer& checkpointer) {
    if (what == "printf") {
      std::printf("{\"action\":\"status\",\"responseFor\":\"printf\"}\n");
    } else if (what == "cout") {
      std::cout << "partial text without a newline" << std::flush;
    } else if (what == "write to 1") {
      if (::write(1, "raw", 3) != 3) say("write failed");
    } else if (what == "run a program") {
      // The program shows its stdin, its signals, and all descriptors that it has inherited.
      if (std::system("cat; echo stdin ended >&2; grep -E 'Sig(Ign|Blk)' /proc/self/status >&2; "
                      "ls -l /proc/self/fd >&2") != 0) {
        say("system failed");
      }
    } else if (what == "abort") {
      std::abort();
    } else if (what == "throw") {
      throw std::runtime_error("as told");
    } else if (what == "sleep") {
      std::this_thread::sleep_for(1h);
    } else if (what == "wait for stop") {
      note("waits");
      std::promise<void> stop;
      // libstdc++ calls the newest stop_callback first. An older one may hang.
      const std::stop_callback at_stop(context_.stop_token(), [&] { stop.set_value(); });
      stop.get_future().wait();
      say("stopped");
      note("stopped");
    } else if (what == "stop the worker") {
      std::thread([&] { context_.request_worker_stop(); }).join();
      context_.request_worker_stop();
    } else if (what == "last") {
      std::this_thread::sleep_for(8ms);  // longer than the callbacks' thread stays the reader
    } else if (what.find("timer") != std::string::npos) {
      start_timer(what);
    } else if (what.find("stop_callback") != std::string::npos || what.find("lock") == 0) {
      act_at_stop(what, checkpointer);
    } else if (what == "hang in the destructor") {
      hangs_in_destructor_ = true;
    } else if (what == "checkpoint in a static object") {
      at_exit.from.emplace(checkpointer);
    } else {
      obey_checkpoint(what, checkpointer);
    }
  }

  void obey_checkpoint(const std::string& what, const kclxx::checkpointer& checkpointer) {
    if (what == "checkpoint") {
      try {
        checkpointer.checkpoint();
        say("persisted");
      } catch (const kclxx::checkpoint_error& error) {
        say("checkpoint failed: " + std::string(error.what()) +
            " name=" + std::string(error.name()));
      }
    } else if (what == "async") {
      checkpointer.async_checkpoint();
    } else if (what == "async with a handler") {
      checkpointer.async_checkpoint({}, [id = std::this_thread::get_id()](std::error_code ec) {
        say(std::string(std::this_thread::get_id() == id ? "in the callback" : "handler") + ": " +
            outcome(ec));
      });
    } else if (what == "async with a handler that hangs") {
      checkpointer.async_checkpoint({}, [](std::error_code) {
        say("handler hangs");
        std::this_thread::sleep_for(1h);
      });
    } else if (what == "checkpoint from a thread") {
      std::thread([&] { checkpoint("thread", checkpointer, position_); }).join();
    } else if (what == "checkpoint with a deadline") {
      threads_.emplace_back([this, handle = checkpointer] {
        wait_for_the_return();
        std::error_code ec;
        handle.checkpoint_until({}, context_.now() + 50ms, ec);
        say("thread: " + outcome(ec));
      });
    } else if (what == "checkpoint between callbacks") {
      threads_.emplace_back([this, handle = checkpointer] {
        wait_for_the_return();
        say("thread waits");
        checkpoint("thread", handle);
      });
    } else if (what == "checkpoint with the log's mutex") {
      threads_.emplace_back([this, handle = checkpointer] {
        wait_for_the_return();
        const std::lock_guard lock(log_mutex);
        say("thread waits");
        checkpoint("thread", handle);
      });
    }
  }

  static std::string outcome(std::error_code ec) { return ec ? ec.message() : "persisted"; }
  static void checkpoint(const std::string& who, const kclxx::checkpointer& checkpointer,
                         const kclxx::checkpoint_target& target = {}) {
    std::error_code ec;
    checkpointer.checkpoint(target, ec);
    say(who + ": " + outcome(ec));
  }

  void act_at_stop(const std::string& what, const kclxx::checkpointer& checkpointer) {
    if (what == "lock and checkpoint; a stop_callback wants the lock") {
      // Many programs do this.
      at_stop_.emplace(context_.stop_token(), [this] {
        const std::lock_guard lock(mutex_);
        say("stop heard");
      });
      const std::lock_guard lock(mutex_);
      obey("checkpoint", checkpointer);
    } else if (what == "stop_callback that checkpoints") {
      at_stop_.emplace(context_.stop_token(),
                       [handle = checkpointer] { checkpoint("at stop", handle); });
    } else if (what == "stop_callback that hangs") {
      at_stop_.emplace(context_.stop_token(), [] { std::this_thread::sleep_for(1h); });
    }
  }

  void start_timer(const std::string& what) {
    if (what == "timer") {
      context_.after(20ms, [this, thread = std::this_thread::get_id(), batches = batches_.load()] {
        say(std::string("timer on ") +
            (std::this_thread::get_id() == thread ? "the callbacks' thread" : "another thread") +
            " after " + std::to_string(batches_ - batches) + " more batches");
      });
    } else if (what == "timer that hangs") {
      context_.after(1ms, [] {
        say("timer hangs");
        std::this_thread::sleep_for(1h);
      });
    } else if (what == "timer that waits for stop") {
      context_.after(1ms, [this] {
        say("timer waits");
        obey("wait for stop", *checkpointer_);
      });
    } else if (what == "timer that is always due") {
      context_.every(1ms, [] { std::this_thread::sleep_for(5ms); });
    }
  }

  // Waits in a thread that a batch has started until its callback has returned: then a timer runs.
  void wait_for_the_return() {
    const auto returned = std::make_shared<std::promise<void>>();
    context_.after(0ms, [returned] { returned->set_value(); });
    returned->get_future().wait();
  }

  struct static_object {
    ~static_object() {
      if (from) checkpoint("at exit", *from);
    }
    std::optional<kclxx::checkpointer> from;
  };
  static static_object at_exit;

  const kclxx::shard_context& context_;
  const kclxx::checkpoint_mode mode_;
  std::vector<std::thread> threads_;
  std::atomic<int> batches_ = 0;
  bool hangs_in_destructor_ = false;
  kclxx::sequence_position position_{"0"};           ///< that of the record that is obeyed
  std::optional<kclxx::checkpointer> checkpointer_;  ///< that of the last batch
  std::mutex mutex_;
  std::optional<std::stop_callback<std::function<void()>>> at_stop_;
};

obedient::static_object obedient::at_exit;

class hanging final : public kclxx::observer {
 public:
  void on_event(const kclxx::observer::event_source&,
                const kclxx::observer::shard_event&) override {
    std::this_thread::sleep_for(1h);
  }
};

class throwing final : public kclxx::observer {
 public:
  void on_event(const kclxx::observer::event_source&,
                const kclxx::observer::shard_event&) override {
    throw std::runtime_error("no disk");
  }
};

}  // namespace

int main(int argc, char** argv) {
  kclxx::run_options options;
  auto mode = kclxx::checkpoint_mode::automatic;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "manual") mode = kclxx::checkpoint_mode::manual;
    if (argument == "at_once") options.checkpoint_interval = 0ms;
    if (argument == "short_grace") options.grace_time = 300ms;
    if (argument == "no_grace") options.grace_time = 0ms;
    if (argument == "small_lines") options.max_line_length = 1000;
    if (argument == "own_log") {
      options.log = [](const kclxx::log_entry& entry) {
        const std::lock_guard lock(log_mutex);
        say("own log " + std::to_string(static_cast<int>(entry.level)) + " " + entry.shard_id +
            ": " + entry.text);
      };
    }
    if (argument == "park_nowhere") {
      return kclxx::run(
          kclxx::each([](const kclxx::record&) {}, {.bad_record = kclxx::bad_record::park}));
    }
    if (argument == "noted_log") options.log = noted_log();
    if (argument == "hanging_log") {
      options.log = [](const kclxx::log_entry&) { std::this_thread::sleep_for(1h); };
    }
    if (argument == "helper_before_run") {
      // The helper keeps no descriptor of this process but those that it was started with.
      const char* const start = "sleep 60 </dev/null >/dev/null 2>&1 & echo $! copy >>\"$JOURNAL\"";
      if (std::system(start) != 0) say("system failed");
    }
    if (argument == "closes_descriptors") {
      for (int fd = 3; fd < 1024; ++fd) ::close(fd);
      while (::open("/dev/null", O_RDONLY) < 5) continue;
    }
    if (argument == "ends_with_parent") ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argument == "hanging_observer") options.observers.push_back(std::make_shared<hanging>());
    if (argument == "throwing_observer") options.observers.push_back(std::make_shared<throwing>());
    if (argument == "fast_metrics") options.metrics.write_interval = 200ms;
    if (argument == "own_metrics") options.metrics.own_metrics = own_metrics;
    if (argument == "fast_retry") options.retry = {1ms, 2ms, 3};
  }
  note("start");
  if (!is_quiet()) std::printf("printed before run, not flushed");
  return kclxx::run(
      [mode](const kclxx::shard_context& shard) { return std::make_unique<obedient>(shard, mode); },
      options);
}
