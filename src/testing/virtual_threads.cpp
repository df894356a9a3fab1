// SPDX-License-Identifier: Apache-2.0
#include "testing/virtual_threads.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace kclxx::testing {

namespace {

thread_local bool is_on_stop_thread = false;

/// Of real time.
constexpr std::chrono::seconds patience{10};

}  // namespace

bool virtual_threads::is_stop_thread() noexcept { return is_on_stop_thread; }

bool virtual_threads::is_caller() const noexcept {
  return current_ != nullptr && current_->real.get_id() == std::this_thread::get_id();
}

// Groups.

std::shared_ptr<virtual_threads::group> virtual_threads::add_group(
    std::size_t threads, detail::virtual_scheduler::executor* executor) {
  auto added = std::make_shared<group>();
  added->threads_ = threads;
  added->executor_ = executor;
  groups_.push_back(added);
  return added;
}

void virtual_threads::post(group& target, std::function<void()> function) {
  if (has_ended_ || target.has_ended_) return;
  target.functions_.emplace_back(++last_function_, std::move(function));
}

void virtual_threads::close(const std::shared_ptr<group>& closed) {
  std::erase(groups_, closed);
  std::exchange(closed->functions_, {}).clear();
}

void virtual_threads::end(group& ended) {
  ended.has_ended_ = true;
  for (;;) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const thread* each) { return each->runs == &ended; });
    if (found == waiting_.end()) return;
    thread& one = **found;
    waiting_.erase(found);
    resume(one);
  }
}

bool virtual_threads::runs_executors() const noexcept {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& each) { return each->executor_ != nullptr; });
}

/// The one whose function is the oldest of those that have a thread left.
std::shared_ptr<virtual_threads::group> virtual_threads::next_group() const {
  std::shared_ptr<group> first;
  for (const auto& each : groups_) {
    if (each->functions_.empty() || each->running_ >= each->threads_) continue;
    if (!first || each->functions_.front().first < first->functions_.front().first) first = each;
  }
  return first;
}

/// An executor may have some: nobody can ask it but by running it.
bool virtual_threads::has_functions() const {
  return next_group() || (runs_ == share::all && runs_executors());
}

std::optional<virtual_threads::time_point> virtual_threads::next_timer() const {
  std::optional<time_point> first;
  const auto consider = [&](const std::optional<time_point>& time) {
    if (time && *time != time_point::max() && (!first || *time < *first)) first = time;
  };
  for (const auto& each : groups_) {
    if (each->executor_ != nullptr && each->is_idle()) consider(each->executor_->next_timer());
  }
  for (const thread* const each : waiting_) consider(each->deadline);
  return first;
}

// Which thread runs.

bool virtual_threads::run(share what) {
  bool has_run = false;
  while (!idle_->is_spinning()) {
    runs_ = what;
    thread* next = take_ended_wait(what);
    if (next == nullptr) {
      if (!has_functions()) break;
      next = &take_idle();
    }
    has_run_ = false;
    resume(*next);
    if (!has_run_) break;
    has_run = true;
  }
  return has_run;
}

/// Of those that are over the one with the earliest deadline, and of these the first that began.
virtual_threads::thread* virtual_threads::take_ended_wait(share what) {
  auto found = waiting_.end();
  for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
    const thread& one = **each;
    if (found != waiting_.end() && (*found)->deadline <= one.deadline) continue;
    if ((what == share::all && one.deadline <= clock_->now()) || (*one.is_over)()) found = each;
  }
  if (found == waiting_.end()) return nullptr;
  thread* const taken = *found;
  waiting_.erase(found);
  return taken;
}

virtual_threads::thread& virtual_threads::take_idle() {
  if (!idle_threads_.empty()) {
    thread* const taken = idle_threads_.back();
    idle_threads_.pop_back();
    return *taken;
  }
  thread& added = *threads_.emplace_back(std::make_unique<thread>());
  try {
    added.real = std::thread([this, &added] {
      usage_->adopt_thread();
      work(added);
    });
  } catch (const std::system_error& error) {
    threads_.pop_back();
    throw std::runtime_error("the test kit cannot start thread " +
                             std::to_string(threads_.size() + 1) +
                             ", for functions that wait side by side: " + error.what());
  }
  return added;
}

void virtual_threads::resume(thread& next) {
  thread* const outer = std::exchange(current_, &next);
  const std::size_t others = waiting_.size();
  {
    std::unique_lock lock(mutex_);
    next.has_turn = true;
    next.turn.notify_one();
    const auto is_back = [&] { return !next.has_turn; };
    if (others > 0 && !next.back.wait_for(lock, patience, is_back)) {
      std::fprintf(
          stderr,
          "kclxx::testing: a function runs for 10 s of real time, while %zu others wait for "
          "the shard's clock. If one of these holds a lock that it wants, the test never "
          "ends (docs/testing.md)\n",
          others);
    }
    next.back.wait(lock, is_back);
  }
  current_ = outer;
  if (!next.has_ended) return;
  next.real.join();
  std::erase_if(threads_, [&](const auto& each) { return each.get() == &next; });
}

void virtual_threads::hand_back(thread& self) {
  std::unique_lock lock(mutex_);
  self.has_turn = false;
  self.back.notify_one();
  if (!self.has_ended) self.turn.wait(lock, [&] { return self.has_turn; });
}

// On one of the threads.

void virtual_threads::work(thread& self) {
  {
    std::unique_lock lock(mutex_);
    self.turn.wait(lock, [&] { return self.has_turn; });
  }
  while (!has_ended_) {
    bool has_run = false;
    if (!idle_->is_spinning()) {
      if (const auto source = next_group()) {
        has_run = run_one(self, source);
      } else if (runs_ == share::all) {
        const auto executors = groups_;
        has_run = std::any_of(executors.begin(), executors.end(), [&](const auto& each) {
          return each->executor_ != nullptr && each->is_idle() && run_one(self, each);
        });
      }
    }
    if (has_run) {
      has_run_ = true;
      continue;
    }
    idle_threads_.push_back(&self);
    hand_back(self);
  }
  self.has_ended = true;
  hand_back(self);
}

/// False when the executor had nothing to run.
bool virtual_threads::run_one(thread& self, const std::shared_ptr<group>& source) {
  idle_->run_task();
  self.runs = source.get();
  ++source->running_;
  bool has_run = true;
  try {
    if (source->executor_ != nullptr) {
      has_run = source->executor_->run_one();
    } else {
      const auto function = std::move(source->functions_.front().second);
      source->functions_.pop_front();
      function();
    }
  } catch (const detail::process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended that
  }
  --source->running_;
  return has_run;
}

void virtual_threads::wait(time_point deadline, const std::function<bool()>& is_over) {
  thread& self = *current_;
  const auto has_ended = [&] { return has_ended_ || self.runs->has_ended_; };
  if (!has_ended()) {
    self.deadline = deadline;
    self.is_over = &is_over;
    waiting_.push_back(&self);
    has_run_ = true;
    hand_back(self);
    has_run_ = true;
  }
  if (has_ended()) throw detail::process_ended();
}

// The end.

void virtual_threads::end() {
  has_ended_ = true;
  for (const auto& each : groups_) std::exchange(each->functions_, {}).clear();
  groups_.clear();
  while (!waiting_.empty()) {
    thread& one = *waiting_.front();
    waiting_.erase(waiting_.begin());
    resume(one);
  }
  while (!idle_threads_.empty()) {
    thread& one = *idle_threads_.back();
    idle_threads_.pop_back();
    resume(one);
  }
}

void virtual_threads::request_stop(std::stop_source source) {
  std::thread([&source] {
    is_on_stop_thread = true;
    source.request_stop();
  }).join();
}

}  // namespace kclxx::testing
