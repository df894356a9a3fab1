// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/metrics_recorder.hpp>
#include <kclxx/prometheus.hpp>
#include <kclxx/version.hpp>

namespace kclxx {

namespace {

using counters = prometheus::Family<prometheus::Counter>;
using gauges = prometheus::Family<prometheus::Gauge>;
using histograms = prometheus::Family<prometheus::Histogram>;
using family = std::variant<counters*, gauges*, histograms*>;

std::vector<family> register_families(prometheus::Registry& registry) {
  std::vector<family> all;
  for (const metrics_recorder::metric_family& one : metrics_recorder::families()) {
    const std::string name(one.name);
    const std::string help(one.help);
    switch (one.type) {
      case metrics_recorder::metric_type::counter:
        all.emplace_back(&prometheus::BuildCounter().Name(name).Help(help).Register(registry));
        break;
      case metrics_recorder::metric_type::gauge:
        all.emplace_back(&prometheus::BuildGauge().Name(name).Help(help).Register(registry));
        break;
      case metrics_recorder::metric_type::histogram:
        all.emplace_back(&prometheus::BuildHistogram().Name(name).Help(help).Register(registry));
        break;
    }
  }
  return all;
}

/// The series of one shard.
class shard_series final : public metrics_recorder {
 public:
  shard_series(const std::vector<family>& families, prometheus::Labels labels)
      : families_(families), labels_(std::move(labels)), series_(families.size()) {
    const auto all = metrics_recorder::families();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto which = static_cast<metric>(i);
      if (all[i].type == metrics_recorder::metric_type::counter && !all[i].label.empty()) {
        for (const std::string_view value : all[i].label_values) add(which, 0, value);
      } else if (which == metrics_recorder::metric::build_info) {
        prometheus::Labels with_version = labels_;
        with_version.emplace(all[i].label, version);
        auto& info = std::get<gauges*>(families_[i])->Add(with_version);
        info.Set(1);
        series_[i].emplace("", &info);
      } else {
        series_[i].emplace("", make(families_[i], labels_));
      }
    }
  }

  ~shard_series() override {
    for (std::size_t i = 0; i < series_.size(); ++i) {
      for (const auto& [label, series] : series_[i]) remove(families_[i], series);
    }
  }

 private:
  using one_series = std::variant<prometheus::Counter*, prometheus::Gauge*, prometheus::Histogram*>;

  static one_series make(const family& owner, const prometheus::Labels& labels) {
    if (const auto* of = std::get_if<counters*>(&owner)) return &(*of)->Add(labels);
    if (const auto* of = std::get_if<gauges*>(&owner)) return &(*of)->Add(labels);
    const auto bounds = metrics_recorder::histogram_buckets();
    return &std::get<histograms*>(owner)->Add(
        labels, prometheus::Histogram::BucketBoundaries(bounds.begin(), bounds.end()));
  }

  static void remove(const family& owner, const one_series& series) {
    if (const auto* of = std::get_if<counters*>(&owner)) {
      (*of)->Remove(std::get<prometheus::Counter*>(series));
    } else if (const auto* other = std::get_if<gauges*>(&owner)) {
      (*other)->Remove(std::get<prometheus::Gauge*>(series));
    } else {
      std::get<histograms*>(owner)->Remove(std::get<prometheus::Histogram*>(series));
    }
  }

  void add(metric id, std::uint64_t amount, std::string_view label_value) override {
    const auto index = static_cast<std::size_t>(id);
    auto& all = series_[index];
    auto found = all.find(std::string(label_value));
    if (found == all.end()) {
      prometheus::Labels labels = labels_;
      labels.emplace(metrics_recorder::families()[index].label, label_value);
      found = all.emplace(label_value, make(families_[index], labels)).first;
    }
    std::get<prometheus::Counter*>(found->second)->Increment(static_cast<double>(amount));
  }

  void set(metric id, double value) override { std::get<prometheus::Gauge*>(only(id))->Set(value); }
  void observe(metric id, double seconds) override {
    std::get<prometheus::Histogram*>(only(id))->Observe(seconds);
  }

  [[nodiscard]] const one_series& only(metric id) const {
    return series_[static_cast<std::size_t>(id)].at("");
  }

  const std::vector<family>& families_;
  const prometheus::Labels labels_;
  std::vector<std::map<std::string, one_series>> series_;  // by the family's own label
};

prometheus::Labels labels_of(const observer::shard_names& names) {
  constexpr const char* unknown = "unknown";
  return {{"application", names.application_name.value_or(unknown)},
          {"stream", names.stream_name.value_or(unknown)},
          {"shard", names.shard_id}};
}

}  // namespace

class prometheus_observer::state {
 public:
  explicit state(std::shared_ptr<prometheus::Registry> registry)
      : registry_(std::move(registry)), families_(register_families(*registry_)) {}

  void record(const observer::event_source& source, const observer::shard_event& event) {
    const std::lock_guard lock(mutex_);
    const auto labels = labels_of(*source.shard);
    if (std::holds_alternative<observer::lease_gained>(event)) {
      auto known = shards_.find(labels);
      if (known == shards_.end()) {
        auto series = std::make_unique<shard_series>(families_, labels);
        known = shards_.emplace(labels, entry{std::move(series), {}}).first;
      }
      known->second.sessions.insert(source.shard);
    }
    const auto found = shards_.find(labels);
    if (found == shards_.end()) return;  // before the lease, and after it
    found->second.series->record(source, event);
    const bool is_end = std::holds_alternative<observer::lease_ended>(event) ||
                        std::holds_alternative<observer::session_ended>(event);
    // The next owner's session may have begun in this process.
    if (is_end) found->second.sessions.erase(source.shard);
    if (found->second.sessions.empty()) shards_.erase(found);
  }

 private:
  struct entry {
    std::unique_ptr<shard_series> series;
    std::set<std::shared_ptr<const observer::shard_names>> sessions;
  };

  std::shared_ptr<prometheus::Registry> registry_;
  const std::vector<family> families_;
  std::mutex mutex_;
  std::map<prometheus::Labels, entry> shards_;
};

prometheus_observer::prometheus_observer(std::shared_ptr<prometheus::Registry> registry)
    : state_(std::make_unique<state>(std::move(registry))) {}

prometheus_observer::~prometheus_observer() = default;

void prometheus_observer::on_event(const observer::event_source& source,
                                   const observer::shard_event& event) {
  state_->record(source, event);
}

}  // namespace kclxx
