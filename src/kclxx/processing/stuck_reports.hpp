// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <kclxx/detail/shard_service.hpp>

#include "processing/work_list.hpp"

namespace kclxx::processing {

/// Tells users which handlers do not return: in the log and to observers.
///
/// `mutex` is held for each look at the work list, and for no call of the service. Thread safety:
/// all functions from any thread.
class stuck_reports {
 public:
  stuck_reports(std::shared_ptr<detail::shard_service> service, std::mutex& mutex, work_list& work)
      : service_(std::move(service)), mutex_(mutex), work_(work) {}

  /// Reports the handlers for which a report is due. Returns the record of the first; std::nullopt
  /// without one.
  std::optional<std::string> report_due();
  /// Reports that no handler is stuck, if that is still so.
  void report_none();

 private:
  /// Sends the event, with the present number of stuck handlers, if the condition holds with the
  /// mutex held. Returns whether it does.
  template <class Condition>
  bool observe(handlers_stuck event, Condition is_true);

  const std::shared_ptr<detail::shard_service> service_;
  std::mutex observing_;  // locked before mutex_, so that events leave in order
  std::mutex& mutex_;
  work_list& work_;
};

}  // namespace kclxx::processing
