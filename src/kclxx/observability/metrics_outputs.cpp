// SPDX-License-Identifier: Apache-2.0
#include "observability/metrics_outputs.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/duration.hpp"
#include "base/unlocked.hpp"
#include "observability/figures.hpp"
#include "observability/metrics_file.hpp"
#include "observability/summary.hpp"
#include "observability/text_format.hpp"

namespace kclxx::observability {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds least_interval{1};

/// Something that is due every so often; never, with an interval of zero.
class schedule {
 public:
  explicit schedule(clock::duration interval) : interval_(interval) {}

  void start(clock::time_point now) { last_ = now; }
  void start_due(clock::time_point now) { last_ = now - interval_; }
  [[nodiscard]] bool is_on() const noexcept { return interval_ > clock::duration::zero(); }
  [[nodiscard]] clock::time_point due() const {
    return is_on() ? last_ + interval_ : clock::time_point::max();
  }
  /// The time since the last call.
  clock::duration take(clock::time_point now) { return now - std::exchange(last_, now); }

 private:
  clock::duration interval_;
  clock::time_point last_{};
};

}  // namespace

/// Shared with the thread, which outlives the owner when a file system does not answer.
class metrics_outputs::state {
 public:
  state(const metrics_options& options, log write_log, text write_text)
      : options_(options),
        write_log_(std::move(write_log)),
        write_text_(std::move(write_text)),
        file_schedule_(options.directory.empty()
                           ? clock::duration::zero()
                           : std::max<clock::duration>(detail::clamped(options.write_interval),
                                                       least_interval)),
        summary_(detail::clamped(options.summary_interval)),
        cloudwatch_(detail::clamped(options.cloudwatch_interval)),
        has_file_(file_schedule_.is_on()) {}

  void record(const observer::event_source& source, const observer::shard_event& event) {
    const std::lock_guard lock(mutex_);
    recorder_.record(source, event);
    if (std::holds_alternative<observer::lease_gained>(event)) {
      names_ = source.shard;
      changed_.notify_one();
    } else if (std::holds_alternative<observer::lease_ended>(event)) {
      has_lease_ended_ = true;
      changed_.notify_one();
    } else if (const auto* end = std::get_if<observer::session_ended>(&event)) {
      is_removed_at_end_ = end->status == exit_status::ok;
    }
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    is_abandoned_ = true;
    changed_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return names_ || is_ending_; });
    if (!names_) return;
    const auto began = clock::now();
    file_schedule_.start_due(began);
    summary_.start(began);
    cloudwatch_.start(began);
    for (bool is_last = false;;) {
      try {
        if (!is_abandoned_) write(lock, clock::now(), is_last);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        // No memory: what is due next is written then.
      }
      if (is_last) return;
      changed_.wait_until(lock,
                          std::min({has_file_ ? file_schedule_.due() : clock::time_point::max(),
                                    summary_.due(), cloudwatch_.due()}),
                          [this] {
                            return is_ending_ ||
                                   (has_lease_ended_ && has_file_ && options_.remove_at_end);
                          });
      is_last = is_ending_;
    }
  }

 private:
  void write(std::unique_lock<std::mutex>& lock, clock::time_point now, bool is_last) {
    if (has_file_ && options_.remove_at_end &&
        (has_lease_ended_ || (is_last && is_removed_at_end_))) {
      has_file_ = false;
      if (file_) file_->remove();
    }
    if (has_file_ && (is_last || now >= file_schedule_.due())) write_file(lock, now);
    if (summary_.is_on() && (is_last || now >= summary_.due())) {
      const auto time = summary_.take(now);
      output(lock, summarized_, [&](const figures& previous, const figures& current) {
        write_log_(log_level::info, summary_line(previous, current, time));
      });
    }
    if (cloudwatch_.is_on() && (is_last || now >= cloudwatch_.due())) {
      cloudwatch_.take(now);
      output(lock, reported_, [&](const figures& previous, const figures& current) {
        const auto date = std::chrono::system_clock::now();
        write_text_(cloudwatch_line(previous, current, *names_, date) + '\n');
      });
    }
  }

  template <class Function>
  void output(std::unique_lock<std::mutex>& lock, figures& last, Function write_them) {
    const figures current = recorder_.now();
    const detail::unlocked meanwhile(lock);
    write_them(last, current);
    last = current;
  }

  /// A file that cannot be written is reported once, until it can be written again.
  void write_file(std::unique_lock<std::mutex>& lock, clock::time_point now) {
    file_schedule_.start(now);
    const figures current = recorder_.now();
    const detail::unlocked meanwhile(lock);
    if (!file_) open_file();
    const std::error_code error = file_->write(to_prometheus_text(current, *names_) + own_text());
    if (error && !std::exchange(has_file_failed_, true)) {
      write_log_(log_level::warning,
                 "cannot write the metrics to " + file_->path() + ": " + error.message());
    }
    if (!error) has_file_failed_ = false;
  }

  std::string own_text() {
    if (!options_.own_metrics) return {};
    std::string why = "an unknown exception";
    try {
      return own_metrics_text(options_.own_metrics(*names_), *names_,
                              [this](const std::string& name, const std::string& problem) {
                                log_own("'" + name + "' is left out: " + problem);
                              });
    } catch (const std::exception& error) {
      why = error.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
    if (!std::exchange(has_own_thrown_, true)) log_own("it failed: " + why);
    return {};
  }

  /// Once for each text, as long as there are few.
  void log_own(const std::string& text) {
    constexpr std::size_t most = 100;
    if (logged_own_.size() == most || !logged_own_.insert(text).second) return;
    write_log_(log_level::warning, "metrics_options::own_metrics: " + text + " (logged once)");
  }

  void open_file() {
    std::string directory = options_.directory;
    if (directory.back() != '/') directory += '/';
    file_.emplace(directory + metrics_file_name(*names_));
    if (names_->application_name) return;
    write_log_(log_level::warning,
               "the metrics have application=\"unknown\", since KCLXX_APPLICATION_NAME is not set; "
               "kclxx daemon run sets it");
  }

  const metrics_options options_;
  const log write_log_;
  const text write_text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  figures_recorder recorder_;
  std::shared_ptr<const observer::shard_names> names_;
  bool has_lease_ended_ = false;
  bool is_removed_at_end_ = false;
  bool is_ending_ = false;
  bool is_abandoned_ = false;

  // Of the thread.
  schedule file_schedule_;
  schedule summary_;
  schedule cloudwatch_;
  bool has_file_;  // until it was removed
  std::optional<metrics_file> file_;
  figures summarized_;
  figures reported_;
  bool has_file_failed_ = false;
  bool has_own_thrown_ = false;
  std::set<std::string> logged_own_;
};

bool metrics_outputs::is_any_on(const metrics_options& options) noexcept {
  using std::chrono::milliseconds;
  return !options.directory.empty() || options.summary_interval > milliseconds(0) ||
         options.cloudwatch_interval > milliseconds(0);
}

metrics_outputs::metrics_outputs(const metrics_options& options, log write_log, text write_text)
    : state_(std::make_shared<state>(options, std::move(write_log), std::move(write_text))) {
  thread_.post([shared = state_] { shared->run(); });
}

metrics_outputs::~metrics_outputs() { state_->abandon(); }

void metrics_outputs::record(const observer::event_source& source,
                             const observer::shard_event& event) {
  state_->record(source, event);
}

bool metrics_outputs::finish(clock::time_point deadline) {
  state_->end();
  if (thread_.drain(deadline)) return true;
  state_->abandon();
  return false;
}

}  // namespace kclxx::observability
