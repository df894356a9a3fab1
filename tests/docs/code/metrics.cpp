// SPDX-License-Identifier: Apache-2.0
// The code of docs/metrics.md.
#include "metrics.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/observer.hpp>

namespace {

// clang-format off: as the page has it
/// The clicks of each shard. With kclxx-share one process serves several shards.
class click_counts {
 public:
  std::atomic<int>& of(const std::optional<std::string>& stream, const std::string& shard) {
    const std::lock_guard lock(mutex_);
    return clicks_[{stream, shard}];
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::optional<std::string>, std::string>, std::atomic<int>> clicks_;
};
// clang-format on

}  // namespace

clicks_program make_clicks_program() {
  // clang-format off
  const auto clicks = std::make_shared<click_counts>();
  kclxx::run_options options;
  options.metrics.own_metrics = [clicks](const kclxx::observer::shard_names& names) {
    return std::vector<kclxx::own_metric>{{.name = "clicks_total",
                                           .help = "Clicks that were counted.",
                                           .type = kclxx::own_metric::metric_type::counter,
                                           .value = double(clicks->of(names.stream_name, names.shard_id))}};
  };
  const auto make_processor = kclxx::each([clicks](const kclxx::shard_context& shard) {
    return [&count = clicks->of(shard.stream_name(), shard.shard_id())](const kclxx::record&) { ++count; };
  });
  // clang-format on
  return {options, make_processor};
}

namespace {

/// Starts a span of OpenTelemetry's with this beginning, and ends it.
void emit(const std::string& name, std::chrono::system_clock::time_point begin,
          std::chrono::system_clock::time_point end, const std::string& position,
          const std::string& error) {
  static_cast<void>(name + position + error);
  static_cast<void>(end - begin);
}

class tracing : public kclxx::observer {
  void on_event(const event_source& source, const shard_event& event) override {
    if (const auto* attempt = std::get_if<record_attempted>(&event)) {
      emit("handle " + source.shard->stream_name.value_or("?"), source.date - attempt->duration,
           source.date, to_string(attempt->position), attempt->error);
    }
  }
};

}  // namespace

std::shared_ptr<kclxx::observer> make_tracing() { return std::make_shared<tracing>(); }
