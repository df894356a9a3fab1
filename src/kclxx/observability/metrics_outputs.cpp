// SPDX-License-Identifier: Apache-2.0
#include "observability/metrics_outputs.hpp"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <kclxx/version.hpp>

#include "base/duration.hpp"
#include "base/file_name.hpp"
#include "base/fnv.hpp"
#include "base/printable.hpp"
#include "io/lines.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::observability {

namespace {

std::size_t index(metric family) noexcept { return static_cast<std::size_t>(family); }

}  // namespace

std::uint64_t histogram_figures::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

figures::figures() {
  const auto families = metrics_recorder::families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto family = static_cast<metric>(i);
    if (families[i].type == metrics_recorder::metric_type::histogram) histograms[family] = {};
    if (families[i].type != metrics_recorder::metric_type::counter) continue;
    if (families[i].label.empty()) continue;
    auto& values = labels[family];  // also where no value is known from the start
    for (const std::string_view value : families[i].label_values) values.emplace(value, 0);
  }
  gauges[index(metric::build_info)] = 1;
}

std::uint64_t figures::counter(metric family) const noexcept {
  const auto found = labels.find(family);
  if (found == labels.end()) return counters[index(family)];
  return std::accumulate(found->second.begin(), found->second.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& term) { return sum + term.second; });
}

std::uint64_t figures::counter(metric family, std::string_view label) const noexcept {
  const auto& values = labels.at(family);
  const auto found = values.find(label);
  return found == values.end() ? 0 : found->second;
}

std::string to_text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {digits, end};
}

void figures_recorder::add(metric family, std::uint64_t amount, std::string_view label_value) {
  if (label_value.empty()) {
    figures_.counters[index(family)] += amount;
  } else {
    figures_.labels.at(family)[std::string(label_value)] += amount;
  }
}

void figures_recorder::set(metric family, double value) { figures_.gauges[index(family)] = value; }

void figures_recorder::observe(metric family, double seconds) {
  const auto bounds = metrics_recorder::histogram_buckets();
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  histogram_figures& into = figures_.histograms.at(family);
  ++into.counts.at(static_cast<std::size_t>(bucket));
  into.sum += seconds;
}

namespace {

constexpr std::chrono::milliseconds least_interval{1};

std::string in_directory(std::string directory, const std::string& file_name) {
  if (directory.back() != '/') directory += '/';
  return directory + file_name;
}

bool is_held_by_another(const std::error_code& lock_error) noexcept {
  return lock_error == std::errc::resource_unavailable_try_again ||
         lock_error == std::errc::permission_denied;
}

}  // namespace

bool metrics_outputs::is_any_on(const metrics_options& options) noexcept {
  using std::chrono::milliseconds;
  return !options.directory.empty() || options.cloudwatch_interval > milliseconds(0);
}

metrics_outputs::metrics_outputs(const metrics_options& options, log write_log, text write_text)
    : options_(options), write_log_(std::move(write_log)), write_text_(std::move(write_text)) {}

void metrics_outputs::start(clock::time_point now) {
  if (!options_.directory.empty()) file_due_ = now;
  const auto interval = detail::clamped(options_.cloudwatch_interval);
  if (interval.count() > 0) cloudwatch_due_ = now + interval;
}

void metrics_outputs::write(const figures& current, const observer::shard_names& names,
                            clock::time_point now, bool is_last, bool removes_file) {
  if (removes_file && options_.remove_at_end) {
    file_due_ = never;
    if (file_) file_->remove();
  }
  if (file_due_ != never && (is_last || now >= file_due_)) {
    file_due_ = now + std::max(detail::clamped(options_.write_interval), least_interval);
    write_file(current, names);
  }
  if (!options_.directory.empty() && !has_file_failed_) count_leases(current, names, is_last);
  if (cloudwatch_due_ != never && (is_last || now >= cloudwatch_due_)) {
    cloudwatch_due_ = now + detail::clamped(options_.cloudwatch_interval);
    const auto date = std::chrono::system_clock::now();
    write_text_(cloudwatch_line(std::exchange(reported_, current), current, names, date) + '\n');
  }
}

/// A file that cannot be written is reported once, until it can be written again.
void metrics_outputs::write_file(const figures& current, const observer::shard_names& names) {
  if (!file_) {
    file_.emplace(in_directory(options_.directory, metrics_file_name(names)));
    if (!names.application_name) {
      write_log_(
          log_level::warning,
          "the metrics have application=\"unknown\", since KCLXX_APPLICATION_NAME is not set; "
          "kclxx daemon run sets it");
    }
  }
  const std::error_code error = file_->write(to_prometheus_text(current, names) + own_text(names));
  if (error && !std::exchange(has_file_failed_, true)) {
    write_log_(log_level::warning,
               "cannot write the metrics to " + file_->path() + ": " + error.message());
  }
  if (!error) has_file_failed_ = false;
  if (file_->lock_error() && !std::exchange(is_missing_lock_logged_, true)) {
    write_log_(log_level::warning,
               "the metrics file " + file_->path() + " has no lock (" +
                   file_->lock_error().message() +
                   "), so kclxx health cannot see that its process lives; use a directory of a "
                   "file system with locks");
  }
}

/// Many children begin at the same time. A child that does not get its turn counts at its next
/// write.
void metrics_outputs::count_leases(const figures& current, const observer::shard_names& names,
                                   bool is_last) {
  if (!lease_counters_) {
    lease_counters_.emplace(in_directory(options_.directory, lease_counters_file_name(names)));
  }
  const std::error_code error = lease_counters_->add(current, names);
  if (error && (is_last || !is_held_by_another(error)) &&
      !std::exchange(has_counting_failed_, true)) {
    write_log_(log_level::warning, "cannot count leases in " + lease_counters_->path() + ": " +
                                       error.message() + " (logged once)");
  }
}

std::string metrics_outputs::own_text(const observer::shard_names& names) {
  if (!options_.own_metrics) return {};
  std::string why = "an unknown exception";
  try {
    return own_metrics_text(options_.own_metrics(names), names,
                            [this](const std::string& name, const std::string& problem) {
                              log_own("'" + name + "' is left out: " + problem);
                            });
  } catch (const std::exception& error) {
    why = detail::text_of(error);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  if (!std::exchange(has_own_thrown_, true)) log_own("it failed: " + why);
  return {};
}

/// Logs each text once, up to a number of texts.
void metrics_outputs::log_own(const std::string& message) {
  constexpr std::size_t max_texts = 100;
  if (logged_own_.size() == max_texts || !logged_own_.insert(message).second) return;
  write_log_(log_level::warning, "metrics_options::own_metrics: " + message + " (logged once)");
}

namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code lock_whole(int file) noexcept {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0 ? std::error_code() : last_error();
}

/// Names this start of the machine, with all its containers; empty when that cannot be known.
std::string boot_name() {
  char text[64];
  const io::descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t size = ::read(file.get(), text, sizeof text);
  if (size <= 0) return {};
  detail::fnv_hash hash;
  hash.add(std::string_view(text, static_cast<std::size_t>(size)));
  return std::to_string(hash.value());
}

/// Removes temporary files that killed writers of any shard have left. A writer that lives on this
/// machine has the lock of its file, or tries again. Files of further machines are not removed.
void remove_left_temporaries(const std::string& path) {
  const std::string boot = boot_name();
  if (boot.empty()) return;
  const std::string mark = ".prom." + boot + '-';
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(std::filesystem::path(path).parent_path(), ignored),
       end;
       !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename();
    if (!name.starts_with("kclxx") || name.find(mark) == std::string::npos) continue;
    const io::descriptor file(
        ::open(at->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.is_open() && !lock_whole(file.get())) ::unlink(at->path().c_str());
  }
}

}  // namespace

std::string temporary_suffix() {
  static std::atomic<unsigned> count = 0;
  return '.' + boot_name() + '-' + std::to_string(::getpid()) + '-' + std::to_string(count++);
}

/// A writer whose temporary file was removed as that of a killed writer tries again with a further
/// name: the process that removed it has its lock. The tries are limited, since a security module
/// may refuse each lock with the same error.
std::error_code metrics_file::write(std::string_view text) {
  constexpr int most_tries = 10;
  if (!written_) remove_left_temporaries(path_);
  struct stat about {};
  std::string temporary;
  io::descriptor lock;
  for (int tries = 1;;) {
    temporary = path_ + temporary_suffix();
    // Further users may write to the directory: their files are neither written nor followed.
    lock = io::descriptor(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock.is_open() && errno == EEXIST) continue;
    if (!lock.is_open()) return last_error();
    lock_error_ = lock_whole(lock.get());
    if (::fstat(lock.get(), &about) != 0) return last_error();
    const bool is_taken = about.st_nlink == 0 || is_held_by_another(lock_error_);
    if (!is_taken || tries++ == most_tries) break;
    ::unlink(temporary.c_str());
  }
  std::error_code error;
  const int fd = ::fcntl(lock.get(), F_DUPFD_CLOEXEC, 0);  // close(2) tells of late errors
  // Where a mount decides on modes, the error is EPERM.
  if (fd < 0 || (::fchmod(fd, 0644) != 0 && errno != EPERM)) error = last_error();
  if (!error) error = io::write_all(fd, text);
  if (fd >= 0 && ::close(fd) != 0 && !error) error = last_error();
  if (!error && std::rename(temporary.c_str(), path_.c_str()) != 0) error = last_error();
  if (error) {
    ::unlink(temporary.c_str());
  } else {
    written_ = identity{about.st_dev, about.st_ino};
    lock_ = std::move(lock);
  }
  return error;
}

std::error_code lease_counters::add(const figures& current, const observer::shard_names& names) {
  const auto is_added = [&](metric family) {
    return current.counter(family) == added_.counter(family);
  };
  if (is_added(metric::leases_gained) && is_added(metric::leases_ended)) return {};
  std::error_code error = try_to_add(current, names);
  for (int tries = 1; tries < 100 && is_held_by_another(error); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    error = try_to_add(current, names);
  }
  return error;
}

/// The lock is on the file that is replaced: who gets it has the latest file, if that has the name.
std::error_code lease_counters::try_to_add(const figures& current,
                                           const observer::shard_names& names) {
  const io::descriptor file(
      ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!file.is_open()) return last_error();
  if (const std::error_code lock_error = lock_whole(file.get())) return lock_error;
  struct stat locked {};
  struct stat named {};
  if (::fstat(file.get(), &locked) != 0) return last_error();
  const bool is_latest = ::stat(path_.c_str(), &named) == 0 && named.st_dev == locked.st_dev &&
                         named.st_ino == locked.st_ino;
  if (!is_latest) return std::make_error_code(std::errc::resource_unavailable_try_again);
  constexpr std::size_t max_size = 65'536;
  std::string before(max_size, '\0');
  const ssize_t size = ::read(file.get(), before.data(), before.size());
  if (size < 0) return last_error();
  before.resize(static_cast<std::size_t>(size));
  const std::error_code error =
      metrics_file(path_).write(lease_counters_text(before, added_, current, names));
  if (!error) added_ = current;
  return error;
}

void metrics_file::remove() noexcept {
  struct stat about {};
  if (!written_ || ::stat(path_.c_str(), &about) != 0) return;
  if (about.st_dev == written_->device && about.st_ino == written_->number) {
    ::unlink(path_.c_str());
  }
  written_.reset();
}

namespace {

/// A label's value, or a help text, with its escapes.
std::string escaped(std::string_view value, char quote = '"') {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == quote) text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(protocol::replace_invalid_utf8(value)) + '"';
}

std::string stream_labels_of(const observer::shard_names& names) {
  return label("application", names.application_name.value_or(unknown_name)) + ',' +
         label("stream", names.stream_name.value_or(unknown_name));
}

std::string labels_of(const observer::shard_names& names) {
  return stream_labels_of(names) + ',' + label("shard", names.shard_id);
}

/// The application and the stream in the name of a file.
std::string stream_part(const observer::shard_names& names) {
  return detail::percent_encoded(names.application_name.value_or(unknown_name), "-_.") + '.' +
         detail::percent_encoded(names.stream_name.value_or(unknown_name), "-_");
}

/// Whether the family counts what outlives the shard's file.
bool is_of_leases(metric figure) {
  return figure == metric::leases_gained || figure == metric::leases_ended;
}

constexpr std::string_view type_names[] = {"counter", "gauge", "histogram"};

std::string header_of(const metrics_recorder::metric_family& about) {
  const std::string name(about.name);
  return "# HELP " + name + " " + std::string(about.help) + "\n# TYPE " + name + " " +
         std::string(type_names[static_cast<std::size_t>(about.type)]) + "\n";
}

class writer {
 public:
  writer(const figures& figures, const observer::shard_names& names)
      : figures_(figures), labels_(labels_of(names)) {}

  std::string text() && {
    const auto families = metrics_recorder::families();
    for (std::size_t i = 0; i < families.size(); ++i) {
      const auto figure = static_cast<metric>(i);
      if (!is_of_leases(figure)) family(figure, families[i]);
    }
    return std::move(text_);
  }

 private:
  void family(metric figure, const metrics_recorder::metric_family& about) {
    const std::string name(about.name);
    text_.append(header_of(about));
    switch (about.type) {
      case metrics_recorder::metric_type::counter:
        return counters(figure, about, name);
      case metrics_recorder::metric_type::gauge:
        return sample(name, figure == metric::build_info ? label(about.label, version) : "",
                      to_text(figures_.gauge(figure)));
      case metrics_recorder::metric_type::histogram:
        return histogram(figures_.histogram(figure), name);
    }
  }

  void counters(metric figure, const metrics_recorder::metric_family& about,
                const std::string& name) {
    if (about.label.empty()) return sample(name, "", std::to_string(figures_.counter(figure)));
    for (const auto& [value, count] : figures_.labels.at(figure)) {
      sample(name, label(about.label, value), std::to_string(count));
    }
  }

  void histogram(const histogram_figures& values, const std::string& name) {
    const auto bounds = metrics_recorder::histogram_buckets();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      sum += values.counts.at(i);
      sample(name + "_bucket", label("le", to_text(bounds[i])), std::to_string(sum));
    }
    const std::string count = std::to_string(values.count());
    sample(name + "_bucket", label("le", "+Inf"), count);
    sample(name + "_sum", "", to_text(values.sum));
    sample(name + "_count", "", count);
  }

  void sample(const std::string& name, const std::string& own_label, const std::string& value) {
    text_.append(name).append("{").append(labels_);
    if (!own_label.empty()) text_.append(",").append(own_label);
    text_.append("} ").append(value).append("\n");
  }

  const figures& figures_;
  std::string labels_;
  std::string text_;
};

/// Errors of the functions below: std::invalid_argument.
void require(bool is_valid, const std::string& problem) {
  if (!is_valid) throw std::invalid_argument(problem);
}

bool is_name(std::string_view text, std::string_view others) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.end(), [&](char c) { return detail::is_plain(c, others); });
}

/// The labels of a figure, sorted by name. They are equal if they are the same for Prometheus.
std::map<std::string, std::string> own_labels(const own_metric& own) {
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : own.labels) {
    require(is_name(name, "_") && !name.starts_with("__"),
            "'" + name + "' is no label that Prometheus accepts");
    require(name != "application" && name != "stream" && name != "shard",
            "the label '" + name + "' is kclxx's");
    require(protocol::is_utf8(value), "the value of the label '" + name + "' is not UTF-8");
    require(labels.emplace(name, value).second, "the label '" + name + "' is there twice");
  }
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  return labels;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return to_text(value);
}

/// The figures of one name.
struct own_family {
  const own_metric* first;
  std::set<std::map<std::string, std::string>> labels;
  std::string lines;
};

/// The value in CloudWatch's line, which is that of an interval. std::nullopt for a histogram
/// without a new value.
std::optional<std::string> cloudwatch_value(const figures& previous, const figures& now,
                                            metric figure, metrics_recorder::metric_type type) {
  switch (type) {
    case metrics_recorder::metric_type::counter:
      return std::to_string(now.counter(figure) - previous.counter(figure));
    case metrics_recorder::metric_type::gauge:
      return to_text(now.gauge(figure));
    case metrics_recorder::metric_type::histogram:
      break;
  }
  const histogram_figures& total = now.histogram(figure);
  const histogram_figures& before = previous.histogram(figure);
  const std::uint64_t count = total.count() - before.count();
  if (count == 0) return std::nullopt;
  return to_text((total.sum - before.sum) / static_cast<double>(count));
}

}  // namespace

std::string to_prometheus_text(const figures& figures, const observer::shard_names& names) {
  return writer(figures, names).text();
}

std::string lease_counters_text(std::string_view before, const figures& added, const figures& now,
                                const observer::shard_names& names) {
  std::string text;
  const auto append = [&](const std::string& series, std::uint64_t amount) {
    const std::string start = series + ' ';
    std::uint64_t value = 0;
    const std::size_t begin = ("\n" + std::string(before)).find("\n" + start);
    if (begin != std::string::npos) {
      const std::string_view digits = before.substr(begin + start.size());
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
    }
    text.append(start).append(std::to_string(value + amount)).append("\n");
  };
  const std::string common = "{" + stream_labels_of(names);
  const auto families = metrics_recorder::families();
  const auto& gained = families[static_cast<std::size_t>(metric::leases_gained)];
  text += header_of(gained);
  append(std::string(gained.name) + common + "}",
         now.counter(metric::leases_gained) - added.counter(metric::leases_gained));
  const auto& ended = families[static_cast<std::size_t>(metric::leases_ended)];
  text += header_of(ended);
  for (const std::string_view reason : ended.label_values) {
    append(std::string(ended.name) + common + ',' + label(ended.label, reason) + "}",
           now.counter(metric::leases_ended, reason) - added.counter(metric::leases_ended, reason));
  }
  return text;
}

std::string own_metrics_text(
    const std::vector<own_metric>& own, const observer::shard_names& names,
    const std::function<void(const std::string&, const std::string&)>& refuse) {
  const std::string common = labels_of(names);
  std::map<std::string, own_family> families;
  for (const own_metric& figure : own) {
    try {
      require(is_name(figure.name, "_:"), "Prometheus accepts no such name");
      require(!figure.name.starts_with("kclxx_"), "the names that begin with kclxx_ are kclxx's");
      require(protocol::is_utf8(figure.help), "its help is not UTF-8");
      const auto labels = own_labels(figure);
      own_family& family =
          families.try_emplace(figure.name, own_family{&figure, {}, {}}).first->second;
      require(family.labels.insert(labels).second, "it has two values with the same labels");
      family.lines.append(figure.name).append("{").append(common);
      for (const auto& [name, value] : labels) family.lines.append(",").append(label(name, value));
      family.lines.append("} ").append(number_text(figure.value)).append("\n");
    } catch (const std::invalid_argument& error) {
      refuse(figure.name, error.what());
    }
  }
  std::string text;
  for (const auto& [name, family] : families) {
    const std::string help = family.first->help.empty() ? name : family.first->help;
    const bool is_counter = family.first->type == own_metric::metric_type::counter;
    text.append("# HELP ").append(name).append(" ").append(escaped(help, '\\'));
    text.append("\n# TYPE ").append(name).append(is_counter ? " counter\n" : " gauge\n");
    text.append(family.lines);
  }
  return text;
}

std::string metrics_file_name(const observer::shard_names& names) {
  const std::string shard = detail::percent_encoded(names.shard_id, "-_");
  return detail::file_name("kclxx." + stream_part(names) + '.' + shard, ".prom");
}

std::string lease_counters_file_name(const observer::shard_names& names) {
  return detail::file_name("kclxx-leases." + stream_part(names), ".prom");
}

std::string cloudwatch_line(const figures& previous, const figures& now,
                            const observer::shard_names& names,
                            std::chrono::system_clock::time_point date) {
  const auto families = metrics_recorder::families();
  std::string declared;
  std::string values;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const metrics_recorder::metric_family& about = families[i];
    if (about.cloudwatch_name.empty()) continue;
    const auto value = cloudwatch_value(previous, now, static_cast<metric>(i), about.type);
    if (!value) continue;
    const std::string name(about.cloudwatch_name);
    declared += declared.empty() ? "" : ",";
    declared +=
        R"({"Name":")" + name + R"(","Unit":")" + std::string(about.cloudwatch_unit) + R"("})";
    values += ",\"" + name + "\":" + *value;
  }
  // CloudWatch accepts no empty dimension.
  std::string dimensions;
  std::string members;
  const auto dimension = [&](const char* name, const std::optional<std::string>& value) {
    if (!value || value->empty()) return;
    dimensions += std::string(dimensions.empty() ? "" : ",") + '"' + name + '"';
    members += std::string(",\"") + name + "\":";
    protocol::append_quoted(members, *value);
  };
  dimension("Application", names.application_name);
  dimension("Stream", names.stream_name);
  const std::string all_shards = "[" + dimensions + "]";
  dimension("Shard", names.shard_id);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(date.time_since_epoch()).count();
  return R"({"_aws":{"Timestamp":)" + std::to_string(milliseconds) +
         R"(,"CloudWatchMetrics":[{"Namespace":"kclxx","Dimensions":[)" + all_shards + ",[" +
         dimensions + R"(]],"Metrics":[)" + declared + "]}]}" + members + values + "}";
}

}  // namespace kclxx::observability
