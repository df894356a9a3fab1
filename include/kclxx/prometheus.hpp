// SPDX-License-Identifier: Apache-2.0
// Component prometheus: find_package(kclxx REQUIRED COMPONENTS prometheus), kclxx::prometheus.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <prometheus/registry.h>

#include <kclxx/detail/export.hpp>
#include <kclxx/observer.hpp>

namespace kclxx {

/// Keeps the families of docs/metrics.md in a registry of prometheus-cpp, which may have families
/// of the program, too. A process with several shards can then expose the metrics of all at one
/// port. Put it into run_options::observers. A shard's series end with its lease or its session.
///
/// Thread safety: one observer may watch many sessions.
class prometheus_observer final : public observer {
 public:
  /// Errors: std::invalid_argument when one of the names already belongs to a different family in
  /// the registry.
  explicit prometheus_observer(std::shared_ptr<prometheus::Registry> registry);
  /// Removes its series from the registry.
  ~prometheus_observer() override;

 private:
  void on_event(const observer::event_source& source, const observer::shard_event& event) override;

  class state;
  std::unique_ptr<state> state_;
};

}  // namespace kclxx
