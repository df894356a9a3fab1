// SPDX-License-Identifier: Apache-2.0
// The code of docs/metrics.md.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/observer.hpp>

kclxx::run_options with_clicks(const std::atomic<int>& clicks);
std::shared_ptr<kclxx::observer> make_tracing();

kclxx::run_options with_clicks(const std::atomic<int>& clicks) {
  // clang-format off: as the page has it
  kclxx::run_options options;
  options.metrics.own_metrics = [&clicks](const kclxx::observer::shard_names&) {
    return std::vector<kclxx::own_metric>{{.name = "clicks_total",
                                           .help = "Clicks that were counted.",
                                           .type = kclxx::own_metric::metric_type::counter,
                                           .value = double(clicks.load())}};
  };
  // clang-format on
  return options;
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
