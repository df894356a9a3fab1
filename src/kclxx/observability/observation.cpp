// SPDX-License-Identifier: Apache-2.0
#include "observability/observation.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include <kclxx/detail/direct_observer.hpp>

#include "protocol/utf8.hpp"

namespace kclxx::observability {

using clock = std::chrono::steady_clock;

std::unique_ptr<observation> observation::make(const run_options& options,
                                               observer::shard_names names, log output) {
  if (options.observers.empty() && !metrics_outputs::is_any_on(options.metrics)) return nullptr;
  return std::unique_ptr<observation>(
      new observation(options, std::move(names), std::move(output)));
}

observation::observation(const run_options& options, observer::shard_names names, log output) {
  // Outputs are read as UTF-8, and a variable may have any bytes.
  for (auto* name : {&names.stream_name, &names.application_name, &names.worker_id}) {
    if (*name) *name = protocol::replace_invalid_utf8(**name);
  }
  names_ = std::make_shared<observer::shard_names>(std::move(names));
  observer_queue::observers queued;
  for (const auto& each : options.observers) {
    const bool is_direct = dynamic_cast<const detail::direct_observer*>(each.get()) != nullptr;
    (is_direct ? direct_ : queued).push_back(each);
  }
  if (metrics_outputs::is_any_on(options.metrics)) {
    outputs_.emplace(options.metrics, output.write, output.write_text);
  }
  if (!queued.empty()) queue_.emplace(std::move(queued), output.observer_threw);
}

void observation::name_shard(const std::string& shard_id) {
  const std::lock_guard lock(mutex_);
  observer::shard_names names = *names_;
  names.shard_id = shard_id;
  names_ = std::make_shared<observer::shard_names>(std::move(names));
}

void observation::observe(observer::shard_event&& event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const observer::event_source source{names_, clock::now(), std::chrono::system_clock::now()};
    if (outputs_) outputs_->record(source, event);
    for (const auto& each : direct_) each->on_event(source, event);
    if (queue_) queue_->push(source, std::move(event));
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for an event; the dialogue continues
  }
}

bool observation::finish(clock::time_point deadline) {
  // The metrics first: an observer that takes too long must not keep the file from being removed.
  const bool is_written = !outputs_ || outputs_->finish(deadline);
  return (!queue_ || queue_->finish(deadline)) && is_written;
}

namespace {

constexpr const char* seconds_form = " is not a number of seconds from 0 to 86400: it is ignored";

void read_seconds(const char* name, const detail::environment& variables,
                  std::chrono::milliseconds& result, std::vector<std::string>& problems) {
  const auto value = variables(name);
  if (!value) return;
  const std::string_view text(*value);
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > 86400) {
    problems.push_back(std::string(name) + "=" + *value + seconds_form);
    return;
  }
  result = std::chrono::seconds(seconds);
}

}  // namespace

metrics_options with_environment(metrics_options options, const detail::environment& variables,
                                 std::vector<std::string>& problems) {
  if (auto directory = variables("KCLXX_METRICS_DIR")) options.directory = std::move(*directory);
  read_seconds("KCLXX_SUMMARY_SECONDS", variables, options.summary_interval, problems);
  read_seconds("KCLXX_CLOUDWATCH_SECONDS", variables, options.cloudwatch_interval, problems);
  return options;
}

}  // namespace kclxx::observability
