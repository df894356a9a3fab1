// SPDX-License-Identifier: Apache-2.0
// The program of docs/metrics.md: one port for all shards.
#include <chrono>
#include <iostream>
#include <memory>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>
#include <thread>

#include <kclxx/kclxx.hpp>
#include <kclxx/prometheus.hpp>

int main() {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::Exposer exposer("127.0.0.1:0");
  exposer.RegisterCollectable(registry);

  kclxx::run_options options;
  options.observers = {std::make_shared<kclxx::prometheus_observer>(registry)};
  return kclxx::run(
      [&](kclxx::record_batch batch) {
        // Observers hear of the shard a moment later, and make one family after the other.
        while (registry->Collect().size() < 24)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::cerr << batch.size() << " records, " << registry->Collect().size() << " families\n";
      },
      options);
}
