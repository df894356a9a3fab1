// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard_runtime.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <random>
#include <utility>

#include "base/real_thread_pool.hpp"
#include "base/stoppable_sleep.hpp"
#include "io/line_writer.hpp"
#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/logger.hpp"

namespace kclxx::runtime {

using std::chrono::milliseconds;

namespace {

/// The destructor and what is left of user code have this long at least, and the last log lines
/// some more: together less than the second that run promises beyond the grace time.
constexpr milliseconds least_teardown{500};
constexpr milliseconds last_logs{300};

}  // namespace

/// User code that has no thread of its own runs when the lock is released: it may call back.
class shard_runtime::event {
 public:
  explicit event(shard_runtime& owner) : owner_(owner), lock_(owner.mutex_) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  /// Also when the event has thrown: what it led to until then is not lost.
  ~event() {
    if (lock_.owns_lock()) run_user_code();
  }

  std::unique_lock<std::mutex>& lock() { return lock_; }
  void run_user_code() {
    const auto without_thread = std::exchange(owner_.without_thread_, {});
    lock_.unlock();
    for (const auto& function : without_thread) function();
  }

 private:
  shard_runtime& owner_;
  std::unique_lock<std::mutex> lock_;
};

shard_runtime::shard_runtime(configuration with, processor_factory make_processor,
                             const run_options& options)
    : with_(std::move(with)),
      log_function_(options.log),
      driver_(std::move(make_processor), options, with_.input_is_file, std::random_device{}(),
              *this),
      is_callbacks_thread_reading_(!with_.input_is_file),
      input_(with_.input, options.max_line_length, *this),
      poll_(with_.input),
      reactor_(with_.input, with_.input_is_file, all_timers, handlers()) {
  if (with_.input_is_file) reactor_.resume();
}

shard_runtime::~shard_runtime() {
  if (stop_thread_.joinable()) stop_thread_.detach();
}

// --- The session's end ---

exit_status shard_runtime::serve() {
  // It ends the event loop, whether or not the callbacks' thread could be started.
  const auto end_loop = [this](std::thread* thread) {
    reactor_.stop();
    thread->join();
  };
  std::thread protocol_thread;
  {
    const io::signal_block block;
    protocol_thread = std::thread([this] { run_protocol_thread(); });
  }
  const std::unique_ptr<std::thread, decltype(end_loop)> ended(&protocol_thread, end_loop);
  if (with_.leave_process) {
    run_callbacks();
    const std::lock_guard lock(mutex_);
    return *driver_.status();
  }
  std::thread callbacks([self = shared_from_this()] { self->run_callbacks(); });
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [this] { return is_finished_ || is_stuck_; });
  const bool is_stuck = !is_finished_;
  const exit_status status = is_stuck ? exit_status::callback_stuck : *driver_.status();
  lock.unlock();
  if (is_stuck) {
    callbacks.detach();
  } else {
    callbacks.join();
  }
  return status;
}

void shard_runtime::end_input() {
  on_end_of_input(false, 0);
  leave_if_stuck();
}

void shard_runtime::left(exit_status) {
  call_.reset();
  timers_.end();
  has_work_.notify_all();
  wake_reader();
  const auto rest = grace_end_ ? std::chrono::ceil<milliseconds>(*grace_end_ - clock::now())
                               : driver_.options().grace_time;
  reactor_.arm(teardown_timer, std::max(rest, least_teardown));
}

/// The session has waited for the callback during the grace time.
void shard_runtime::leave_if_stuck() {
  {
    const std::lock_guard lock(mutex_);
    if (driver_.status() != exit_status::callback_stuck || !is_in_user_code_) return;
  }
  leave_stuck(nullptr);
}

/// User code cannot be ended. std::_Exit keeps what was logged, since logs are not buffered.
void shard_runtime::leave_stuck(const char* why) {
  std::unique_lock lock(mutex_);
  const std::string shard = shard_id_;
  if (why != nullptr) post_log({log_level::error, shard, why});
  lock.unlock();
  if (!tasks_.drain(clock::now() + last_logs)) {
    log_to(with_.log,
           {log_level::error, shard,
            "a log function or a checkpoint handler did not return within the grace time"});
  }
  if (with_.leave_process) with_.leave_process(exit_status::callback_stuck);
  tasks_.abandon();
  lock.lock();
  with_.log = STDERR_FILENO;  // the others' owner closes them
  is_stuck_ = true;
  is_done_.notify_all();
}

void shard_runtime::fail(const std::string& why) noexcept {
  try {
    event now(*this);
    driver_.on_failure(exit_status::resource_failure, why);
  } catch (...) {
    try {
      log_to(with_.log, {log_level::error, {}, why});
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the line either
    }
    if (with_.leave_process) with_.leave_process(exit_status::resource_failure);
  }
}

// --- User code ---

/// In the order of the events, hence under the lock.
void shard_runtime::write_log(log_level level, std::string text) {
  post_log({level, shard_id_, std::move(text)});
}

void shard_runtime::post_log(const log_entry& entry) {
  if (!log_function_) return log_to(with_.log, entry);
  try {
    tasks_.post([write = log_function_, entry, log = with_.log] {
      try {
        write(entry);
      } catch (...) {
        log_to(log, entry);
      }
    });
  } catch (const std::exception&) {  // no thread, no memory
    log_to(with_.log, entry);
  }
}

void shard_runtime::run_handler(checkpoint_handler handler, std::error_code result) {
  // std::function must be copyable.
  auto shared = std::make_shared<checkpoint_handler>(std::move(handler));
  std::function<void()> task = [this, self = weak_from_this(), shared, result] {
    try {
      (*shared)(result);
    } catch (...) {
      if (const auto keep = self.lock()) handler_threw();
    }
  };
  try {
    tasks_.post(std::move(task));
  } catch (const std::exception&) {
    without_thread_.push_back(std::move(task));
  }
}

void shard_runtime::handler_threw() noexcept {
  try {
    event now(*this);
    driver_.on_user_code_threw("a checkpoint handler", std::current_exception());
  } catch (const std::exception& error) {
    fail(std::string("cannot serve the daemon: ") + error.what());
  }
}

/// A stop_callback may want what a callback holds, or never return: a thread of its own runs it.
/// The token has stopped when this returns.
void shard_runtime::request_stop() {
  try {
    const io::signal_block block;
    stop_thread_ = std::thread([source = stop_]() mutable { source.request_stop(); });
    while (!stop_.stop_requested()) std::this_thread::yield();
  } catch (const std::system_error&) {
    without_thread_.emplace_back([source = stop_]() mutable { source.request_stop(); });
  }
}

// --- What the driver asks for ---

std::error_code shard_runtime::write(std::string_view lines) {
  return io::write_all(with_.output, lines);
}

void shard_runtime::arm(session::timer which, milliseconds after) {
  if (which == session::timer::grace) grace_end_ = clock::now() + after;
  reactor_.arm(static_cast<std::size_t>(which), after);
}

void shard_runtime::call(session::call what) {
  if (what.what == protocol::action_kind::initialize) shard_id_ = what.shard_id;
  call_ = std::move(what);
  has_work_.notify_one();
  wake_reader();
}

void shard_runtime::wake(session::waiter_id waiter, std::error_code result) {
  const auto found = waiting_.find(waiter);
  if (found == waiting_.end()) return;
  found->second->result = result;
  found->second->answered.notify_one();
  waiting_.erase(found);
  wake_reader();
}

void shard_runtime::pause_reading(bool paused) {
  if (!paused) reactor_.resume();
}

void shard_runtime::on_line(
    std::variant<driver::line_decoder::decoded, driver::line_decoder::bad_line,
                 driver::line_decoder::blank>
        line,
    bool has_replaced_utf8) {
  event now(*this);
  if (has_replaced_utf8) driver_.on_utf8_warning();
  driver_.on_line(std::move(line));
}

void shard_runtime::on_end_of_input(bool unfinished_line, int error) {
  event now(*this);
  driver_.on_end_of_input(unfinished_line, error);
}

bool shard_runtime::is_full() const {
  const std::lock_guard lock(mutex_);
  return driver_.is_reading_paused() || driver_.status();
}

bool shard_runtime::is_over() const {
  const std::lock_guard lock(mutex_);
  return driver_.status().has_value();
}

// --- shard_service ---

void shard_runtime::submit(const std::optional<sequence_position>& position,
                           checkpoint_handler handler) {
  event now(*this);
  driver_.on_submit(position, std::move(handler), is_in_callback());
}

std::error_code shard_runtime::wait(const std::optional<sequence_position>& position,
                                    const std::optional<time_point>& deadline) {
  waiting_call mine;
  event now(*this);
  // Between two actions the daemon does not listen, and the next waits for this thread.
  if (is_in_timer_ && is_callbacks_thread()) {
    return driver_.status() ? errc::daemon_gone : errc::not_allowed_here;
  }
  const session::waiter_id id = driver_.next_waiter();
  const auto is_answered = [&] { return mine.result.has_value(); };
  try {
    waiting_.emplace(id, &mine);
    driver_.on_checkpoint(id, position, is_in_callback());
    now.run_user_code();
    now.lock().lock();
    read_until_answered(now.lock(), mine, deadline);
    if (!deadline) {
      mine.answered.wait(now.lock(), is_answered);
    } else {
      mine.answered.wait_until(now.lock(), *deadline, is_answered);
    }
  } catch (const std::exception& error) {  // no memory for a line, no descriptor for a poll
    if (now.lock().owns_lock()) now.lock().unlock();
    fail(std::string("cannot serve the daemon: ") + error.what());
    now.lock().lock();
    waiting_.erase(id);
    return errc::daemon_gone;
  }
  if (mine.result) return *mine.result;
  waiting_.erase(id);
  driver_.on_deadline(id);
  return errc::timed_out;
}

bool shard_runtime::sleep_until(time_point deadline) {
  return detail::sleep_until(deadline, stop_.get_token());
}

shard_runtime::timer_id shard_runtime::start_timer(milliseconds delay, milliseconds period,
                                                   std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  const timer_id id = timers_.start(clock::now() + delay, period, std::move(function));
  has_work_.notify_one();
  wake_reader();
  return id;
}

void shard_runtime::cancel_timer(timer_id timer) {
  const std::lock_guard lock(mutex_);
  timers_.cancel(timer);
}

std::unique_ptr<thread_pool> shard_runtime::make_thread_pool(std::size_t threads) {
  const io::signal_block block;
  return std::make_unique<detail::real_thread_pool>(threads);
}

void shard_runtime::log(log_level level, const std::string& text) {
  event now(*this);
  driver_.on_log(level, text);
}

// --- The callbacks' thread ---

void shard_runtime::run_callbacks() {
  with_.names.service = shared_from_this();
  with_.names.stop_token = stop_.get_token();
  run_callbacks_until_the_end();
  // Handlers may use the processor, and the destructor may log.
  tasks_.drain(time_point::max());
  if (stop_thread_.joinable()) stop_thread_.join();
  driver_.processor().destroy();
  tasks_.drain(time_point::max());
  with_.names.service.reset();  // it kept this object alive
  const std::lock_guard lock(mutex_);
  is_finished_ = true;
  is_done_.notify_all();
}

void shard_runtime::run_callbacks_until_the_end() {
  std::unique_lock lock(mutex_);
  callbacks_thread_ = std::this_thread::get_id();
  bool is_timers_turn = true;  // or a timer that is always due would let nothing else in
  while (!driver_.status()) {
    try {
      const auto timer = is_timers_turn ? timers_.take_due(clock::now()) : nullptr;
      is_timers_turn = !timer;
      if (timer) {
        run_timer(lock, timer);
      } else if (call_) {
        run_callback(lock);
      } else {
        wait_for_work(lock);
      }
    } catch (const std::exception& error) {  // no memory for a line, no descriptor for a poll
      if (lock.owns_lock()) lock.unlock();
      fail(std::string("cannot serve the daemon: ") + error.what());
      lock.lock();
    }
  }
}

void shard_runtime::run_callback(std::unique_lock<std::mutex>& lock) {
  session::call what = *std::exchange(call_, std::nullopt);
  begin_user_code();
  lock.unlock();
  const auto result =
      driver_.run_callback(std::move(what), checkpointer(shared_from_this()), with_.names);
  leave_if_forked();
  {
    event now(*this);
    is_in_user_code_ = false;
    driver_.on_callback_done(result);
  }
  lock.lock();
}

void shard_runtime::run_timer(std::unique_lock<std::mutex>& lock,
                              const driver::shard_timers::function& timer) {
  begin_user_code();
  is_in_timer_ = true;
  lock.unlock();
  std::exception_ptr thrown;
  try {
    (*timer)();
  } catch (...) {
    thrown = std::current_exception();
  }
  leave_if_forked();
  {
    event now(*this);
    is_in_user_code_ = is_in_timer_ = false;
    if (thrown) driver_.on_user_code_threw("a timer", thrown);
  }
  lock.lock();
}

/// User code that forked without exec has returned in the copy, where this is the only thread.
void shard_runtime::leave_if_forked() const {
  if (io::fork_count() == fork_count_) return;
  log_to(STDERR_FILENO,
         {log_level::error, shard_id_,
          "a forked copy of the process returned from user code and leaves; end it there "
          "with exec or _exit"});
  std::_Exit(static_cast<int>(exit_status::daemon_gone));
}

void shard_runtime::begin_user_code() {
  is_in_user_code_ = true;
  user_code_began_ = clock::now();
  if (is_callbacks_thread_reading_ && !waiting_.empty()) hand_reading_over();
  watch_user_code();
}

void shard_runtime::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto due = timers_.next_due();
  if (is_callbacks_thread_reading_) {
    read(lock, due);
  } else if (due) {
    has_work_.wait_until(lock, *due);
  } else {
    has_work_.wait(lock);
  }
}

// --- Who reads ---

void shard_runtime::read(std::unique_lock<std::mutex>& lock,
                         const std::optional<time_point>& deadline) {
  is_in_read_ = true;
  lock.unlock();
  read_outcome outcome{};
  try {
    outcome = read_once(deadline);
  } catch (...) {
    lock.lock();
    is_in_read_ = false;
    throw;
  }
  lock.lock();
  is_in_read_ = false;
  const bool is_open = call_ || is_in_user_code_;
  // Between two actions a partial line does not mean that the input is ahead.
  if (outcome == read_outcome::ended || driver_.is_reading_paused() ||
      (outcome == read_outcome::ahead && is_open)) {
    hand_reading_over();
  }
}

shard_runtime::read_outcome shard_runtime::read_once(const std::optional<time_point>& deadline) {
  std::optional<milliseconds> limit;
  if (input_.holds_large_memory()) limit = line_input::idle_time;
  if (deadline) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline - clock::now());
    limit = limit ? std::min(*limit, left) : left;
  }
  const auto found = poll_.wait(limit);
  if (found == io::input_poll::result::timed_out) input_.on_idle();
  if (found == io::input_poll::result::readable) {
    has_input_ended_ = input_.on_readable() == line_input::state::ended;
  }
  if (has_input_ended_) return read_outcome::ended;
  return input_.is_ahead() ? read_outcome::ahead : read_outcome::lockstep;
}

void shard_runtime::read_until_answered(std::unique_lock<std::mutex>& lock,
                                        const waiting_call& mine,
                                        const std::optional<time_point>& deadline) {
  if (is_lockstep_callback()) {
    while (!mine.result && is_callbacks_thread_reading_ &&
           (!deadline || clock::now() < *deadline)) {
      read(lock, deadline);
    }
    // The answers of others are still to come.
    if (is_callbacks_thread_reading_ && !waiting_.empty()) hand_reading_over();
    // The user's code continues.
    watch_user_code();
  } else if (!mine.result && is_callbacks_thread_reading_ && !is_in_read_) {
    hand_reading_over();
  }
}

void shard_runtime::hand_reading_over() {
  is_callbacks_thread_reading_ = false;
  reactor_.resume();
}

bool shard_runtime::give_back_reading() {
  const std::lock_guard lock(mutex_);
  if (with_.input_is_file || input_.is_ahead() || driver_.is_reading_paused() || driver_.status() ||
      !waiting_.empty()) {
    return false;
  }
  if (is_in_user_code_) {
    if (clock::now() - user_code_began_ >= session::callback_patience) return false;
    watch_user_code();
  }
  is_callbacks_thread_reading_ = true;
  has_work_.notify_one();
  return true;
}

// One watch serves many short callbacks: it is started again only when it is over.
void shard_runtime::watch_user_code() {
  if (std::exchange(is_watched_, true)) return;
  const auto left =
      std::chrono::ceil<milliseconds>(user_code_began_ + session::callback_patience - clock::now());
  reactor_.arm(watch_timer, left > milliseconds(0) ? left : session::callback_patience);
}

void shard_runtime::on_watch() {
  event now(*this);
  is_watched_ = false;
  // In a read, the callbacks' thread starts the watch again when it is through.
  if (!is_in_user_code_ || is_in_read_ || driver_.status()) return;
  if (clock::now() - user_code_began_ < session::callback_patience) return watch_user_code();
  if (is_callbacks_thread_reading_) hand_reading_over();
  driver_.on_callback_lasts();
}

void shard_runtime::wake_reader() {
  if (is_in_read_ && !is_callbacks_thread()) poll_.wake();
}

// --- The protocol thread ---

io::reactor::handlers shard_runtime::handlers() {
  return {[this] { on_readable(); }, [this] { on_resumed(); },
          [this] {
            on_end_of_input(false, 0);
            leave_if_stuck();
          },
          [this](std::size_t which) { on_timer(which); }};
}

void shard_runtime::run_protocol_thread() {
  try {
    reactor_.run();
    return;
  } catch (const std::exception& error) {
    fail(std::string("cannot serve the daemon: ") + error.what());
  } catch (...) {
    fail("cannot serve the daemon: an unknown exception in the event loop");
  }
  // There is no event loop any more: this thread keeps the end's time.
  std::unique_lock lock(mutex_);
  const auto end = clock::now() + std::max(driver_.options().grace_time, least_teardown);
  if (is_done_.wait_until(lock, end, [this] { return is_finished_; })) return;
  lock.unlock();
  leave_stuck("user code did not return within the grace time");
}

void shard_runtime::on_resumed() {
  {
    const std::lock_guard lock(mutex_);
    if (is_callbacks_thread_reading_) {
      reactor_.leave_input();
      return;
    }
  }
  if (!has_input_ended_) input_.on_resumed();
  if (input_.holds_large_memory()) reactor_.arm(idle_timer, line_input::idle_time);
  after_reading();
}

void shard_runtime::on_readable() {
  const bool held_large = input_.holds_large_memory();
  has_input_ended_ = input_.on_readable() == line_input::state::ended;
  if (!held_large && input_.holds_large_memory()) {
    reactor_.arm(idle_timer, line_input::idle_time);
  }
  after_reading();
}

/// Comes last: input_ may be the callbacks' thread's then.
void shard_runtime::after_reading() {
  leave_if_stuck();
  if (has_input_ended_ || is_full()) {
    reactor_.pause();
  } else if (give_back_reading()) {
    reactor_.leave_input();
  }
}

void shard_runtime::on_timer(std::size_t which) {
  switch (which) {
    case idle_timer: {
      {
        const std::lock_guard lock(mutex_);
        if (is_callbacks_thread_reading_) return;
      }
      input_.on_idle();
      if (input_.holds_large_memory()) reactor_.arm(idle_timer, line_input::idle_time);
      return;
    }
    case watch_timer:
      return on_watch();
    case teardown_timer:
      return leave_stuck(
          "the processor's destructor, or other user code at the end of the "
          "session, did not return within the grace time");
    default: {
      event now(*this);
      driver_.on_timer(static_cast<session::timer>(which));
      break;
    }
  }
  leave_if_stuck();
}

}  // namespace kclxx::runtime
