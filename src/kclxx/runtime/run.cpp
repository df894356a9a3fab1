// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <kclxx/run.hpp>

#include "base/function_processor.hpp"
#include "io/input_poll.hpp"
#include "io/reactor.hpp"
#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/conversation.hpp"
#include "runtime/dispatcher.hpp"
#include "runtime/input.hpp"
#include "runtime/logger.hpp"

namespace kclxx {

namespace runtime {
namespace {

/// One process, one daemon, one shard: the two threads and what they share.
class child {
 public:
  child(const run_options& options, io::stdio_guard& stdio, const std::shared_ptr<logger>& log)
      : options_(options),
        log_(*log),
        reactor_(stdio.input(), stdio.input_is_file(), timer_count, handlers()),
        conversation_(std::make_shared<conversation>(options, stdio.input_is_file(), stdio.output(),
                                                     log, surroundings())),
        input_(stdio.input(), options.max_line_length, *conversation_, *log),
        poll_(stdio.input()) {
    if (stdio.input_is_file()) reactor_.resume();
  }

  exit_status serve(processor_factory make_processor) {
    std::thread protocol_thread;
    {
      const io::signal_block block;
      protocol_thread = std::thread([this] { reactor_.run(); });
    }
    {
      // Also when there is no memory for a line that the processor thread reads.
      const joined_at_end end{reactor_, protocol_thread};
      dispatcher(std::move(make_processor), conversation_, log_).run();
    }
    return *conversation_->status();
  }

 private:
  // The first two are session::timer's.
  enum : std::size_t { idle_timer = 2, teardown_timer, watch_timer, stop_timer, timer_count };

  struct joined_at_end {
    io::reactor& reactor;
    std::thread& thread;
    joined_at_end(io::reactor& of, std::thread& one) : reactor(of), thread(one) {}
    joined_at_end(const joined_at_end&) = delete;
    joined_at_end& operator=(const joined_at_end&) = delete;
    ~joined_at_end() {
      reactor.stop();
      thread.join();
    }
  };

  io::reactor::handlers handlers() {
    return {[this] { on_readable(); }, [this] { on_resumed(); },
            [this] {
              conversation_->on_end_of_input(false);
              leave_if_stuck();
            },
            [this](std::size_t which) { on_timer(which); }};
  }

  conversation::surroundings surroundings() {
    return {[this](session::timer which, std::chrono::milliseconds after) {
              reactor_.arm(static_cast<std::size_t>(which), after);
            },
            [this] { reactor_.resume(); },
            [this] { reactor_.arm(teardown_timer, options_.grace_time); },
            [this](std::chrono::milliseconds after) { reactor_.arm(watch_timer, after); },
            [this] { reactor_.arm(stop_timer, std::chrono::milliseconds(0)); },
            [this] { poll_.wake(); },
            [this](const auto& deadline) { return read_on_processor_thread(deadline); }};
  }

  read_outcome read_on_processor_thread(
      const std::optional<conversation::clock::time_point>& deadline) {
    std::optional<std::chrono::milliseconds> limit;
    if (input_.holds_large_memory()) limit = input::idle_time;
    if (deadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - conversation::clock::now());
      limit = limit ? std::min(*limit, left) : left;
    }
    const auto found = poll_.wait(limit);
    if (found == io::input_poll::result::timed_out) input_.on_idle();
    if (found == io::input_poll::result::readable) {
      has_ended_ = input_.on_readable() == input::state::ended;
    }
    if (has_ended_) return read_outcome::ended;
    return input_.is_ahead() ? read_outcome::ahead : read_outcome::lockstep;
  }

  void on_resumed() {
    if (!conversation_->is_protocol_thread_reading()) {
      reactor_.leave_input();
      return;
    }
    if (!has_ended_) input_.on_resumed();
    if (input_.holds_large_memory()) reactor_.arm(idle_timer, input::idle_time);
    after_reading();
  }

  void on_readable() {
    const bool held_large = input_.holds_large_memory();
    has_ended_ = input_.on_readable() == input::state::ended;
    if (!held_large && input_.holds_large_memory()) reactor_.arm(idle_timer, input::idle_time);
    after_reading();
  }

  /// Comes last: input_ may be the processor thread's then.
  void after_reading() {
    leave_if_stuck();
    if (has_ended_ || conversation_->is_reading_paused()) {
      reactor_.pause();
    } else if (conversation_->give_back_reading(input_.is_ahead())) {
      reactor_.leave_input();
    }
  }

  void on_idle_timer() {
    if (!conversation_->is_protocol_thread_reading()) return;
    input_.on_idle();
    if (input_.holds_large_memory()) reactor_.arm(idle_timer, input::idle_time);
  }

  void on_timer(std::size_t which) {
    if (which == idle_timer) {
      on_idle_timer();
    } else if (which == stop_timer) {
      conversation_->fire_stop();
    } else if (which == watch_timer) {
      if (conversation_->on_watch()) reactor_.resume();
      leave_if_stuck();
    } else if (which == teardown_timer) {
      log_(log_level::error, "the processor's destructor did not return within the grace time");
      std::_Exit(static_cast<int>(exit_status::callback_stuck));
    } else {
      conversation_->on_timer(static_cast<session::timer>(which));
      leave_if_stuck();
    }
  }

  // A callback that does not return cannot be ended in order; logs are written unbuffered.
  void leave_if_stuck() {
    const auto status = conversation_->status();
    if (status && conversation_->is_callback_running()) std::_Exit(static_cast<int>(*status));
  }

  run_options options_;
  logger& log_;
  io::reactor reactor_;
  std::shared_ptr<conversation> conversation_;
  input input_;
  io::input_poll poll_;
  bool has_ended_ = false;  // belongs to whichever thread reads, as input_ does
};

}  // namespace
}  // namespace runtime

int run(processor_factory make_processor, const run_options& options) {
  const auto log = std::make_shared<runtime::logger>(options.log);
  static std::atomic<bool> has_run = false;
  try {
    if (has_run.exchange(true)) throw std::logic_error("run was called a second time");
    io::stdio_guard stdio;
    if (stdio.input_is_terminal()) {
      (*log)(log_level::info, "stdin is a terminal: type a daemon's lines; Ctrl-D ends it");
    } else {
      io::outlive_signals();
    }
    return static_cast<int>(runtime::child(options, stdio, log).serve(std::move(make_processor)));
  } catch (const std::exception& error) {
    (*log)(log_level::error, std::string("cannot serve the daemon: ") + error.what());
    return static_cast<int>(exit_status::start_failed);
  }
}

int run(std::function<void(record_batch)> process_records, const run_options& options) {
  return run(detail::function_processor::factory(std::move(process_records)), options);
}

}  // namespace kclxx
