// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/log.hpp>
#include <kclxx/metrics_recorder.hpp>
#include <kclxx/observer.hpp>
#include <kclxx/run_options.hpp>

#include "io/descriptor.hpp"

namespace kclxx::observability {

using metric = metrics_recorder::metric;

inline constexpr std::size_t family_count = 0
#define KCLXX_METRIC(...) +1  // NOLINT(bugprone-macro-parentheses): a sum
#include <kclxx/detail/metric_families.inc>
#undef KCLXX_METRIC
    ;
inline constexpr std::size_t bucket_count = 14;

struct histogram_figures {
  std::array<std::uint64_t, bucket_count + 1> counts{};  // of each bucket alone; the last is +Inf
  double sum = 0;
  [[nodiscard]] std::uint64_t count() const noexcept;
};

/// The metrics of a shard since its lease began. A value.
struct figures {
  figures();
  [[nodiscard]] std::uint64_t counter(metric family) const noexcept;  // the sum of all labels
  [[nodiscard]] std::uint64_t counter(metric family, std::string_view label) const noexcept;
  [[nodiscard]] double gauge(metric family) const noexcept {
    return gauges[static_cast<std::size_t>(family)];
  }
  [[nodiscard]] const histogram_figures& histogram(metric family) const noexcept {
    return histograms.at(family);
  }

  std::array<std::uint64_t, family_count> counters{};
  std::array<double, family_count> gauges{};
  /// The counters that have a label, by its values.
  std::map<metric, std::map<std::string, std::uint64_t, std::less<>>> labels;
  std::map<metric, histogram_figures> histograms;
};

/// The fewest digits that read back as the same value.
std::string to_text(double value);

/// Records metrics as figures. Thread safety: none.
class figures_recorder final : public metrics_recorder {
 public:
  [[nodiscard]] const figures& now() const noexcept { return figures_; }

 private:
  void add(metric family, std::uint64_t amount, std::string_view label_value) override;
  void set(metric family, double value) override;
  void observe(metric family, double seconds) override;

  figures figures_;
};

/// A file that is replaced as a whole: a reader sees the old text or the new text. While this
/// object lives, the file has a write lock (F_OFD_SETLK), which tells processes in any pid
/// namespace that its writer lives. A process that can only read the file cannot take the lock.
///
/// Thread safety: none. Blocking: as long as the file system.
class metrics_file {
 public:
  explicit metrics_file(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Why the last file that was written has no lock: the file system or the kernel has none.
  [[nodiscard]] const std::error_code& lock_error() const noexcept { return lock_error_; }
  /// Writes the file. Every user may read it, whatever the umask is: the collector of metrics is a
  /// user of its own.
  std::error_code write(std::string_view text);
  /// Removes the file, if this object has written it: a further process may have the shard.
  void remove() noexcept;

 private:
  struct identity {
    dev_t device;
    ino_t number;
  };

  std::string path_;
  std::optional<identity> written_;
  io::descriptor lock_;
  std::error_code lock_error_;
};

/// The counters of leases of an application and its stream. They have a file of their own, which
/// outlives each lease; all children on the machine add to it, one at a time.
///
/// Thread safety: none. Blocking: as long as the file system, and for up to 0.1 s while other
/// children have the file.
class lease_counters {
 public:
  explicit lease_counters(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Adds to the file what `current` has more than at the last success.
  std::error_code add(const figures& current, const observer::shard_names& names);

 private:
  std::error_code try_to_add(const figures& current, const observer::shard_names& names);

  std::string path_;
  figures added_;
};

/// ".BOOT-PID-NUMBER", the end of the next temporary file's name, which the collector ignores.
/// BOOT names this start of the machine, and is the same in all its containers.
std::string temporary_suffix();

/// The built-in outputs of one session: the text file and the CloudWatch line.
///
/// Thread safety: none. Blocking: as long as the file system.
class metrics_outputs {
 public:
  using clock = std::chrono::steady_clock;
  using log = std::function<void(log_level, const std::string&)>;
  using text = std::function<void(std::string)>;

  [[nodiscard]] static bool is_any_on(const metrics_options& options) noexcept;

  /// `write_text` is for CloudWatch's line.
  metrics_outputs(const metrics_options& options, log write_log, text write_text);

  /// The lease begins: the file is due now, and CloudWatch's line after its interval.
  void start(clock::time_point now);
  [[nodiscard]] clock::time_point due() const { return std::min(file_due_, cloudwatch_due_); }
  /// Writes the outputs that are due; with `is_last`, all of them. With `removes_file` it removes
  /// the file instead, if the options want that.
  void write(const figures& current, const observer::shard_names& names, clock::time_point now,
             bool is_last, bool removes_file);

 private:
  static constexpr auto never = clock::time_point::max();

  void write_file(const figures& current, const observer::shard_names& names);
  void count_leases(const figures& current, const observer::shard_names& names, bool is_last);
  std::string own_text(const observer::shard_names& names);
  void log_own(const std::string& text);

  const metrics_options options_;
  const log write_log_;
  const text write_text_;
  // When the outputs are due; never without a directory or an interval, and for a removed file.
  clock::time_point file_due_ = never;
  clock::time_point cloudwatch_due_ = never;
  std::optional<metrics_file> file_;
  std::optional<lease_counters> lease_counters_;
  figures reported_;
  bool has_file_failed_ = false;
  bool has_counting_failed_ = false;
  bool is_missing_lock_logged_ = false;
  bool has_own_thrown_ = false;
  std::set<std::string> logged_own_;
};

/// All families but those of leases in Prometheus' text format, without timestamps: the collector
/// refuses files with timestamps. The labels are application, stream and shard; not the worker's
/// id, which changes with each start.
std::string to_prometheus_text(const figures& figures, const observer::shard_names& names);

/// The families of leases. Each value is that of `before`, an earlier text of this function, and
/// what `now` has more than `added`. The labels are application and stream.
std::string lease_counters_text(std::string_view before, const figures& added, const figures& now,
                                const observer::shard_names& names);

/// The program's own figures. A figure that would spoil the file is left out, and `refuse` gets its
/// name and what is wrong with it.
std::string own_metrics_text(
    const std::vector<own_metric>& own, const observer::shard_names& names,
    const std::function<void(const std::string&, const std::string&)>& refuse);

/// The name of a shard's file: kclxx.<application>.<stream>.<shard>.prom. Different labels give
/// different names, and equal labels the same name: a series in two files fails the whole scrape.
std::string metrics_file_name(const observer::shard_names& names);

/// The name of the file of lease_counters: kclxx-leases.<application>.<stream>.prom.
std::string lease_counters_file_name(const observer::shard_names& names);

/// The label of an application or a stream whose name is not known.
inline constexpr const char* unknown_name = "unknown";

/// A line of JSON in CloudWatch's embedded metric format. A counter is the increase since
/// `previous`, a histogram its mean (left out without a value), a gauge its value.
std::string cloudwatch_line(const figures& previous, const figures& now,
                            const observer::shard_names& names,
                            std::chrono::system_clock::time_point date);

}  // namespace kclxx::observability
