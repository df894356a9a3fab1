// SPDX-License-Identifier: Apache-2.0
#include "observability/observation.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "protocol/json_string.hpp"

namespace kclxx::observability {

using clock = std::chrono::steady_clock;

/// Shared with the thread, which outlives the owner when an observer or a file system does not
/// return.
class observation::state {
 public:
  state(const run_options& options, observer::shard_names names, log output)
      : observers_(options.observers),
        threw_(std::move(output.observer_threw)),
        names_(std::make_shared<observer::shard_names>(std::move(names))) {
    if (metrics_outputs::is_any_on(options.metrics)) {
      outputs_.emplace(options.metrics, std::move(output.write), std::move(output.write_text));
    }
  }

  void name_shard(const std::string& shard_id) {
    const std::lock_guard lock(mutex_);
    observer::shard_names names = *names_;
    names.shard_id = shard_id;
    names_ = std::make_shared<observer::shard_names>(std::move(names));
  }

  void observe(observer::shard_event&& event) {
    const std::lock_guard lock(mutex_);
    const observer::event_source source{names_, clock::now(), std::chrono::system_clock::now()};
    if (outputs_) record(source, event);
    if (observers_.empty()) return;
    if (events_.size() >= capacity) {
      ++dropped_;
      return;
    }
    events_.push_back({source, std::move(event)});
    if (events_.size() == 1 || events_.size() == enough) changed_.notify_one();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }

  void abandon() {
    std::vector<entry> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    is_abandoned_ = true;  // run() reads it between two events, without the lock
    dropped.swap(events_);
    changed_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (bool is_last = false; !is_last;) {
      wait_for_work(lock);
      is_last = is_ending_;
      if (!is_abandoned_) write(lock, is_last);
      deliver(lock);
    }
  }

  /// Writes the outputs a last time for a thread that does not return from an observer. While the
  /// thread itself writes, a file system holds it up, which would hold up the caller, too.
  void write_last() {
    std::unique_lock lock(mutex_);
    if (!is_writing_) write(lock, true);
  }

 private:
  struct entry {
    observer::event_source source;
    observer::shard_event event;
  };
  static constexpr std::size_t enough = 1024;

  void record(const observer::event_source& source, const observer::shard_event& event) {
    recorder_.record(source, event);
    if (std::holds_alternative<observer::lease_gained>(event)) {
      lease_ = source.shard;
      outputs_->start(source.time);
    } else if (std::holds_alternative<observer::lease_ended>(event)) {
      has_lease_ended_ = true;
    } else {
      if (const auto* end = std::get_if<observer::session_ended>(&event)) {
        has_succeeded_ = end->status == exit_status::ok;
      }
      return;
    }
    is_write_due_ = true;
    changed_.notify_one();
  }

  void wait_for_work(std::unique_lock<std::mutex>& lock) {
    if (is_ending_) return;
    const auto due = lease_ ? outputs_->due() : clock::time_point::max();
    const auto is_urgent = [this] {
      return is_ending_ || is_write_due_ || events_.size() >= enough;
    };
    changed_.wait_until(lock, due, [&] { return !events_.empty() || is_urgent(); });
    if (events_.empty()) return;
    changed_.wait_until(lock, std::min(due, clock::now() + longest_delay), is_urgent);
  }

  void write(std::unique_lock<std::mutex>& lock, bool is_last) {
    is_write_due_ = false;
    const auto now = clock::now();
    const bool removes_file = has_lease_ended_ || (is_last && has_succeeded_);
    if (!lease_ || has_written_last_) return;
    if (!is_last && !removes_file && now < outputs_->due()) return;
    has_written_last_ = is_last;
    is_writing_ = true;
    const auto names = lease_;
    const figures current = recorder_.now();
    // A file system may take long: observe() must not wait for it. is_writing_ keeps write_last()
    // from using the outputs meanwhile.
    {
      const detail::unlocked meanwhile(lock);
      outputs_->write(current, *names, now, is_last, removes_file);
    }
    is_writing_ = false;
  }

  void deliver(std::unique_lock<std::mutex>& lock) {
    if (events_.empty()) return;
    auto taken = std::exchange(events_, {});
    const std::uint64_t dropped = std::exchange(dropped_, 0);
    const detail::unlocked meanwhile(lock);
    const auto group = std::move(taken);  // destroyed without the lock
    for (const entry& delivered : group) {
      if (is_abandoned_) return;
      deliver(delivered.source, delivered.event);
    }
    if (dropped > 0) deliver(group.back().source, observer::events_dropped{dropped});
  }

  void deliver(const observer::event_source& source, const observer::shard_event& event) {
    for (const auto& watching : observers_) {
      try {
        watching->on_event(source, event);
      } catch (...) {
        if (!std::exchange(has_thrown_, true)) threw_(std::current_exception());
      }
    }
  }

  const std::vector<std::shared_ptr<observer>> observers_;
  const std::function<void(const std::exception_ptr&)> threw_;

  std::mutex mutex_;
  // The mutex guards the members down to has_written_last_.
  std::condition_variable changed_;
  std::shared_ptr<const observer::shard_names> names_;
  std::vector<entry> events_;
  std::uint64_t dropped_ = 0;
  bool is_ending_ = false;
  std::atomic<bool> is_abandoned_ = false;  // set with the mutex held

  // For the outputs.
  figures_recorder recorder_;
  std::shared_ptr<const observer::shard_names> lease_;  // null before the lease
  bool has_lease_ended_ = false;
  bool has_succeeded_ = false;
  bool is_write_due_ = false;
  bool is_writing_ = false;
  bool has_written_last_ = false;
  /// While is_writing_ is set, it belongs to the thread that has set it; else the mutex guards it.
  std::optional<metrics_outputs> outputs_;

  bool has_thrown_ = false;  // belongs to the thread of the observers
};

std::unique_ptr<observation> observation::make(const run_options& options,
                                               observer::shard_names names, log output) {
  if (options.observers.empty() && !metrics_outputs::is_any_on(options.metrics)) return nullptr;
  // Outputs are read as UTF-8, and a variable may have any bytes.
  for (auto* name : {&names.stream_name, &names.application_name, &names.worker_id}) {
    if (*name) *name = protocol::replace_invalid_utf8(**name);
  }
  return std::unique_ptr<observation>(
      new observation(std::make_shared<state>(options, std::move(names), std::move(output))));
}

observation::observation(std::shared_ptr<state> shared) : state_(std::move(shared)) {
  thread_.start();
  thread_.post([shared = state_] { shared->run(); });
}

observation::~observation() { state_->abandon(); }

void observation::name_shard(const std::string& shard_id) { state_->name_shard(shard_id); }

void observation::observe(observer::shard_event&& event) noexcept {
  state_->observe(std::move(event));
}

bool observation::finish(clock::time_point deadline) {
  state_->end();
  if (thread_.drain(deadline)) return true;
  state_->abandon();
  state_->write_last();
  return false;
}

metrics_options with_environment(metrics_options options, const detail::environment& variables,
                                 std::vector<std::string>& problems) {
  if (auto directory = variables("KCLXX_METRICS_DIR")) options.directory = std::move(*directory);
  constexpr const char* name = "KCLXX_CLOUDWATCH_SECONDS";
  if (const auto value = variables(name)) {
    const char* const end = value->data() + value->size();
    int seconds = 0;
    const auto [stop, error] = std::from_chars(value->data(), end, seconds);
    if (error == std::errc() && stop == end && seconds >= 0 && seconds <= 86400) {
      options.cloudwatch_interval = std::chrono::seconds(seconds);
    } else {
      problems.push_back(std::string(name) + "=" + *value +
                         " is not a number of seconds from 0 to 86400: it is ignored");
    }
  }
  return options;
}

}  // namespace kclxx::observability
