// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <utility>

#include <kclxx/processing/failure_policy.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx {

parking_lot::~parking_lot() = default;
void parking_lot::prepare(const shard_context&) {}

permanent_error::~permanent_error() = default;
outage_error::~outage_error() = default;

namespace {

std::string text_of(const batch_failure::failed& failed) {
  return to_string(failed.position) +
         (failed.cause ? ": " + processing::message_of(failed.cause) : std::string());
}

std::string text_of(const std::vector<batch_failure::failed>& records) {
  if (records.empty()) throw std::invalid_argument("batch_failure: no record is named");
  return std::to_string(records.size()) + " of the batch's records failed, the first at " +
         text_of(records.front());
}

}  // namespace

batch_failure::batch_failure(const sequence_position& position, std::exception_ptr cause) {
  std::vector<failed> records{{position, std::move(cause)}};
  std::string text = "the batch failed at " + text_of(records.front());
  contents_ =
      std::make_shared<const contents>(contents{std::move(records), position, std::move(text)});
}

batch_failure::batch_failure(std::vector<failed> records,
                             std::optional<sequence_position> last_tried) {
  std::string text = text_of(records);
  contents_ = std::make_shared<const contents>(
      contents{std::move(records), std::move(last_tried), std::move(text)});
}

batch_failure::~batch_failure() = default;

}  // namespace kclxx
