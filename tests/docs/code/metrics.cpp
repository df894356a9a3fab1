// SPDX-License-Identifier: Apache-2.0
// The code of docs/metrics.md.
#include <memory>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>

#include <kclxx/kclxx.hpp>
#include <kclxx/prometheus.hpp>

kclxx::run_options one_port();

kclxx::run_options one_port() {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::Exposer exposer("127.0.0.1:9464");
  exposer.RegisterCollectable(registry);

  kclxx::run_options options;
  options.observers = {std::make_shared<kclxx::prometheus_observer>(registry)};
  return options;
}
