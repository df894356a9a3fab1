// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include <kclxx/processing/completion.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>

#include "processing/dispatcher.hpp"

namespace kclxx::detail {

/// What a completion is a handle of: it keeps the record alive, but not the processing.
class taken_record {
 public:
  [[nodiscard]] static completion make_completion(std::weak_ptr<processing::dispatcher> owner,
                                                  processing::attempt_ticket ticket,
                                                  record_batch batch, const kclxx::record& record,
                                                  int attempt) {
    return completion(std::unique_ptr<taken_record>(
        new taken_record(std::move(owner), ticket, std::move(batch), record, attempt)));
  }

  [[nodiscard]] const kclxx::record& record() const noexcept { return record_; }
  [[nodiscard]] int attempt() const noexcept { return attempt_; }

  void complete() const {
    if (const auto alive = owner_.lock()) alive->complete(ticket_);
  }
  void fail(std::exception_ptr exception) const {
    if (const auto alive = owner_.lock()) alive->fail(ticket_, std::move(exception));
  }
  void touch() const {
    if (const auto alive = owner_.lock()) alive->touch(ticket_);
  }

 private:
  taken_record(std::weak_ptr<processing::dispatcher> owner, processing::attempt_ticket ticket,
               record_batch batch, const kclxx::record& record, int attempt)
      : owner_(std::move(owner)),
        ticket_(ticket),
        batch_(std::move(batch)),
        record_(record),
        attempt_(attempt) {}

  std::weak_ptr<processing::dispatcher> owner_;
  processing::attempt_ticket ticket_;
  record_batch batch_;
  kclxx::record record_;
  int attempt_;
};

}  // namespace kclxx::detail
