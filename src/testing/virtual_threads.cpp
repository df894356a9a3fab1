// SPDX-License-Identifier: Apache-2.0
#include "testing/virtual_threads.hpp"

#include <algorithm>
#include <future>

namespace kclxx::testing {

namespace {

thread_local bool is_on_stop_thread = false;

}  // namespace

class virtual_threads::pool final : public detail::thread_pool {
 public:
  explicit pool(std::weak_ptr<virtual_threads> owner, std::shared_ptr<usage> usage)
      : owner_(std::move(owner)), usage_(std::move(usage)) {}

  void post(std::function<void()> function) override {
    if (is_stop_thread() || !usage_->is_owner("a completion, or thread_pool::post(),")) return;
    const auto owner = owner_.lock();
    if (!owner) return;
    owner->post([function = std::move(function), alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) function();
    });
  }

 private:
  std::weak_ptr<virtual_threads> owner_;
  std::shared_ptr<usage> usage_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

bool virtual_threads::is_stop_thread() noexcept { return is_on_stop_thread; }

void virtual_threads::post(std::function<void()> task) {
  if (!has_ended_) tasks_.push_back(std::move(task));
}

bool virtual_threads::run(idle_time& idle) {
  bool has_run = false;
  while (!idle.is_spinning()) {
    idle.run_task();
    try {
      if (!run_one()) return has_run;
    } catch (const detail::process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended the task
    }
    has_run = true;
  }
  return has_run;
}

bool virtual_threads::run_one() {
  if (!tasks_.empty()) {
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  return std::any_of(executors_.begin(), executors_.end(),
                     [](detail::virtual_executor* each) { return each->run_one(); });
}

std::optional<std::chrono::steady_clock::time_point> virtual_threads::next_timer() const {
  std::optional<std::chrono::steady_clock::time_point> first;
  for (detail::virtual_executor* const each : executors_) {
    const auto timer = each->next_timer();
    if (timer && (!first || *timer < *first)) first = timer;
  }
  return first;
}

void virtual_threads::end() {
  has_ended_ = true;
  tasks_.clear();
  executors_.clear();
}

std::unique_ptr<detail::thread_pool> virtual_threads::make_pool() {
  return std::make_unique<pool>(weak_from_this(), usage_);
}

void virtual_threads::request_stop(std::stop_source source) {
  std::promise<void> done;
  const std::future<void> is_done = done.get_future();
  stop_thread_ = std::thread([source, finished = std::move(done)]() mutable {
    is_on_stop_thread = true;
    source.request_stop();
    finished.set_value();
  });
  while (!source.stop_requested()) std::this_thread::yield();  // also on a busy machine
  is_done.wait_for(std::chrono::milliseconds(100));
}

void virtual_threads::join_stop() {
  if (stop_thread_.joinable()) stop_thread_.join();
}

}  // namespace kclxx::testing
