// SPDX-License-Identifier: Apache-2.0
#include "processing/stuck_reports.hpp"

#include <vector>

namespace kclxx::processing {

std::optional<std::string> stuck_reports::report_due() {
  const auto now = service_->now();
  std::vector<work_list::ticket> due;
  {
    const std::lock_guard lock(mutex_);
    due = work_.handlers().take_due(now);
  }
  std::optional<std::string> first;
  for (const auto& one : due) {
    const auto asked = service_->now();
    std::optional<stuck_report> report;
    {
      const std::lock_guard lock(mutex_);
      report = work_.report(one, asked);
    }
    if (!report) continue;
    const std::string text = report->text();
    const bool is_current = observe(std::move(report->event), [&] {
      const auto* const attempt = work_.handlers().find(one);
      return attempt != nullptr && attempt->reports > 0;
    });
    if (!is_current) continue;
    service_->log(log_level::warning, text);
    if (!first) first = std::move(report->record);
  }
  return first;
}

void stuck_reports::report_none() {
  observe({}, [&] { return work_.handlers().stuck() == 0; });
}

template <class Condition>
bool stuck_reports::observe(handlers_stuck event, Condition is_true) {
  const std::lock_guard in_order(observing_);
  {
    const std::lock_guard lock(mutex_);
    if (!is_true()) return false;
    event.handlers = work_.handlers().stuck();
  }
  service_->observe(std::move(event));
  return true;
}

}  // namespace kclxx::processing
