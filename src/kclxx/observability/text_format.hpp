// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/run_options.hpp>

#include "observability/figures.hpp"

namespace kclxx::observability {

/// All families in Prometheus' text format, without timestamps: node_exporter refuses files with
/// one. The labels are application, stream and shard; never the worker's id, which is another with
/// each start.
std::string to_prometheus_text(const figures& figures, const observer::shard_names& names);

/// The program's own figures. `refuse` is told of each that would spoil the file, which is left
/// out: its name, and what is wrong with it.
std::string own_metrics_text(
    const std::vector<own_metric>& own, const observer::shard_names& names,
    const std::function<void(const std::string&, const std::string&)>& refuse);

/// The name of a shard's file: kclxx.<application>.<shard>.prom. Files and labels are one to one,
/// since the same series in two files fails node_exporter's whole scrape.
std::string metrics_file_name(const observer::shard_names& names);

/// What stands for an application or a stream whose name is not known.
inline constexpr const char* unknown_name = "unknown";

// What people and CloudWatch read: the changes since the last time, and the present state.

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
