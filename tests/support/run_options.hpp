// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <kclxx/run_options.hpp>

namespace kclxx::test {

/// Checkpoints with every batch; `watching` sees the events.
inline run_options prompt(std::shared_ptr<observer> watching = nullptr) {
  run_options options;
  options.checkpoint_interval = std::chrono::milliseconds(0);
  if (watching) options.observers = {std::move(watching)};
  return options;
}

/// checkpoint_mode::manual, without a pace unless one is given.
inline run_options manual(std::chrono::milliseconds interval = std::chrono::milliseconds(0),
                          const retry_options& retry = {}) {
  return {.mode = checkpoint_mode::manual, .checkpoint_interval = interval, .retry = retry};
}

}  // namespace kclxx::test
