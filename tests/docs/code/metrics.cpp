// SPDX-License-Identifier: Apache-2.0
// The code of docs/metrics.md.
#include "metrics.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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
