// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <kclxx/processing/failure_policy.hpp>

#include "processing/backoff.hpp"
#include "processing/failure_handling.hpp"

namespace kclxx {

parking_lot::~parking_lot() = default;
void parking_lot::prepare(const shard_context&) {}

permanent_error::~permanent_error() = default;

batch_failure::batch_failure(const sequence_position& position, std::exception_ptr cause)
    : position_(position),
      cause_(std::move(cause)),
      text_(std::make_shared<const std::string>(
          "the batch failed at " + to_string(position) +
          (cause_ ? ": " + processing::message_of(cause_) : std::string()))) {}

batch_failure::~batch_failure() = default;

std::optional<std::chrono::milliseconds> failure_policy::patience() const {
  using std::chrono::milliseconds;
  std::optional<milliseconds> total;
  if (max_attempts) {
    total = milliseconds(0);
    // From the 64th on the wait has reached its maximum, whatever it is.
    for (int failures = 1; failures < std::min(*max_attempts, 64); ++failures) {
      *total += processing::longest_backoff(*this, failures);
    }
    *total += std::max(*max_attempts - 64, 0) * processing::longest_backoff(*this, 64);
  }
  if (max_age) {
    constexpr std::chrono::seconds most = std::chrono::hours(24 * 365 * 10);
    const milliseconds aged = std::min(*max_age, most) + processing::longest_backoff(*this, 64);
    total = total ? std::min(*total, aged) : aged;
  }
  return total;
}

}  // namespace kclxx
