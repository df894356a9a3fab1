// SPDX-License-Identifier: Apache-2.0
// What people and CloudWatch read: the changes since the last time, and the present state.
#pragma once

#include <chrono>
#include <string>

#include <kclxx/observer.hpp>

#include "observability/figures.hpp"

namespace kclxx::observability {

/// "in 60 s: 12000 records (200.0/s), 1.2 MB, 12 batches of 4.1 ms; 0.3 s behind; 0 in flight;
/// 12 checkpoints, 0 failed; 0 retries, 0 parked, 0 skipped".
std::string summary_line(const figures& previous, const figures& now,
                         std::chrono::steady_clock::duration time);

/// A line of JSON in CloudWatch's embedded metric format: counters as what was added since
/// `previous`, histograms as their mean (left out without a value), gauges as they are.
std::string cloudwatch_line(const figures& previous, const figures& now,
                            const observer::shard_names& names,
                            std::chrono::system_clock::time_point date);

}  // namespace kclxx::observability
