// SPDX-License-Identifier: Apache-2.0
#include "testing/virtual_threads.hpp"

#include <cstdio>
#include <system_error>

namespace kclxx::testing {

namespace {

thread_local bool is_on_stop_thread = false;

/// After this real time a function that does not give the turn back is reported.
constexpr std::chrono::seconds patience{10};

}  // namespace

bool virtual_threads::is_stop_thread() noexcept { return is_on_stop_thread; }

bool virtual_threads::is_caller() const noexcept {
  return current_ != nullptr && current_->real.get_id() == std::this_thread::get_id();
}

// Groups.

std::shared_ptr<virtual_threads::group> virtual_threads::add_group(
    std::size_t threads, std::optional<detail::virtual_scheduler::executor> executor) {
  auto added = std::make_shared<group>();
  added->thread_count_ = threads;
  added->executor_ = std::move(executor);
  groups_.push_back(added);
  return added;
}

void virtual_threads::post(group& target, std::function<void()> function) {
  if (has_ended_ || target.has_ended_) return;
  target.functions_.emplace_back(++last_function_number_, std::move(function));
}

void virtual_threads::close(const std::shared_ptr<group>& closed) {
  std::erase(groups_, closed);
  std::exchange(closed->functions_, {}).clear();
}

void virtual_threads::end(group& ended) {
  ended.has_ended_ = true;
  for (;;) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const thread* waiting) { return waiting->runs == &ended; });
    if (found == waiting_.end()) return;
    thread& waiting = **found;
    waiting_.erase(found);
    resume(waiting);  // wait() throws there, since the group has ended
  }
}

bool virtual_threads::runs_executors() const noexcept {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& group) { return group->executor_.has_value(); });
}

/// The group that has the oldest function, among the groups that have an idle thread.
std::shared_ptr<virtual_threads::group> virtual_threads::next_group() const {
  std::shared_ptr<group> first;
  for (const auto& candidate : groups_) {
    if (candidate->functions_.empty() || candidate->running_ >= candidate->thread_count_) continue;
    if (!first || candidate->functions_.front().first < first->functions_.front().first) {
      first = candidate;
    }
  }
  return first;
}

/// Whether a function may be ready. Only running an executor shows whether it has one.
bool virtual_threads::has_functions() const {
  return next_group() || (runs_ == share::all && runs_executors());
}

std::optional<virtual_threads::time_point> virtual_threads::next_timer() const {
  std::optional<time_point> first;
  for (const auto& group : groups_) {
    if (group->executor_ && group->is_idle())
      first = earlier(first, group->executor_->next_timer());
  }
  for (const thread* const waiting : waiting_) first = earlier(first, waiting->deadline);
  return first == time_point::max() ? std::nullopt : first;
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

/// Takes a wait that has ended: the one with the earliest deadline; among equals, the first that
/// began.
virtual_threads::thread* virtual_threads::take_ended_wait(share what) {
  auto found = waiting_.end();
  for (auto candidate = waiting_.begin(); candidate != waiting_.end(); ++candidate) {
    const thread& waiting = **candidate;
    if (found != waiting_.end() && (*found)->deadline <= waiting.deadline) continue;
    const bool is_due = what == share::all && waiting.deadline <= clock_->now();
    if (is_due || (*waiting.is_over)()) found = candidate;
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

/// Gives the thread the turn, and waits until it gives the turn back. The caller may be the test's
/// thread, or a thread of the kit within user code that waits (outer).
void virtual_threads::resume(thread& next) {
  thread* const outer = std::exchange(current_, &next);
  const std::size_t waiting_count = waiting_.size();
  {
    std::unique_lock lock(mutex_);
    next.has_turn = true;
    next.gets_turn.notify_one();
    const auto is_back = [&] { return !next.has_turn; };
    if (waiting_count > 0 && !next.gives_turn_back.wait_for(lock, patience, is_back)) {
      std::fprintf(
          stderr,
          "kclxx::testing: a function runs for 10 s of real time, while %zu others wait for "
          "the shard's clock. If one of these holds a lock that it wants, the test never "
          "ends (docs/testing.md)\n",
          waiting_count);
    }
    next.gives_turn_back.wait(lock, is_back);
  }
  current_ = outer;
  if (!next.has_ended) return;
  next.real.join();
  std::erase_if(threads_, [&](const auto& thread) { return thread.get() == &next; });
}

/// Gives the turn back to resume(), and waits for the next turn, unless the thread ends.
void virtual_threads::hand_back(thread& self) {
  std::unique_lock lock(mutex_);
  self.has_turn = false;
  self.gives_turn_back.notify_one();
  if (!self.has_ended) self.gets_turn.wait(lock, [&] { return self.has_turn; });
}

// On one of the threads.

void virtual_threads::work(thread& self) {
  {
    std::unique_lock lock(mutex_);
    self.gets_turn.wait(lock, [&] { return self.has_turn; });
  }
  // With the turn it runs functions until none is ready, and then hands the turn back as idle.
  while (!has_ended_) {
    bool has_run = false;
    if (!idle_->is_spinning()) {
      if (const auto source = next_group()) {
        has_run = run_one(self, source);
      } else if (runs_ == share::all) {
        const auto copy = groups_;  // a function may add or close a group
        has_run = std::any_of(copy.begin(), copy.end(), [&](const auto& group) {
          return group->executor_ && group->is_idle() && run_one(self, group);
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

/// Runs a function of the group. False when its executor had none.
bool virtual_threads::run_one(thread& self, const std::shared_ptr<group>& source) {
  idle_->run_task();
  self.runs = source.get();
  ++source->running_;
  bool has_run = true;
  try {
    if (source->executor_) {
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
    // Beginning and ending a wait both count as having run, so that run() looks again.
    has_run_ = true;
    hand_back(self);
    has_run_ = true;
  }
  if (has_ended()) throw detail::process_ended();
}

// The end.

void virtual_threads::end() {
  has_ended_ = true;
  // A function's destructor is user code, which may post: has_ended_ lets that have no effect.
  for (const auto& group : groups_) std::exchange(group->functions_, {}).clear();
  groups_.clear();
  // Each wait throws process_ended; its thread unwinds, sees has_ended_ and ends.
  while (!waiting_.empty()) {
    thread& waiting = *waiting_.front();
    waiting_.erase(waiting_.begin());
    resume(waiting);
  }
  while (!idle_threads_.empty()) {
    thread& idle = *idle_threads_.back();
    idle_threads_.pop_back();
    resume(idle);
  }
}

void virtual_threads::request_stop(std::stop_source source) {
  std::thread([&source] {
    is_on_stop_thread = true;
    source.request_stop();
  }).join();
}

}  // namespace kclxx::testing
