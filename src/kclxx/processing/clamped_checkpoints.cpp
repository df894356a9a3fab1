// SPDX-License-Identifier: Apache-2.0
#include "processing/clamped_checkpoints.hpp"

#include <utility>

#include <kclxx/error.hpp>

namespace kclxx::processing {

namespace {

sequence_position nothing() { return sequence_position("TRIM_HORIZON"); }

}  // namespace

template <class Change>
void clamped_checkpoints::send_after(Change change) {
  std::vector<request> covered;
  {
    const std::lock_guard lock(mutex_);
    change();
    if (waiting_.empty()) return;
    const auto waits = [this](const request& one) {
      if (is_released_) return false;
      if (!one.target) return is_open_;
      return one.target->is_number() && (!watermark_ || *watermark_ < *one.target);
    };
    std::vector<request> rest;
    rest.reserve(waiting_.size());  // so that nothing is lost when there is no memory
    covered.reserve(waiting_.size());
    for (request& one : waiting_) (waits(one) ? rest : covered).push_back(std::move(one));
    waiting_ = std::move(rest);
    is_awaited_ = !waiting_.empty();
    for (request& one : covered) {
      if (!one.target) one.target = watermark_.value_or(nothing());
    }
  }
  for (request& one : covered) {
    shard_service_wrapper::async_checkpoint(one.target, std::move(one.handler));
  }
}

void clamped_checkpoints::pass(const sequence_position& watermark) {
  send_after([&] {
    if (!watermark_ || *watermark_ < watermark) watermark_ = watermark;
    for (request& one : waiting_) {
      if (!one.target) one.target = watermark_;
    }
  });
}

void clamped_checkpoints::set_open(bool is_open) {
  send_after([&] { is_open_ = is_open; });
}

void clamped_checkpoints::release() {
  send_after([this] { is_released_ = true; });
}

void clamped_checkpoints::end() noexcept {
  std::vector<request> rest;
  {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    is_awaited_ = false;
    rest.swap(waiting_);
  }
  for (request& one : rest) {
    try {
      if (one.handler) one.handler(errc::daemon_gone);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the session is over
    }
  }
}

void clamped_checkpoints::async_checkpoint(const std::optional<sequence_position>& position,
                                           checkpoint_handler handler) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({position, std::move(handler)});
    is_awaited_ = true;
  }
  // Asked once is_awaited_ is set, so that no record is completed unseen.
  static_cast<void>(watermark());
  send_after([] {});
}

std::error_code clamped_checkpoints::checkpoint(const std::optional<sequence_position>& position,
                                                const std::optional<clock::time_point>& deadline) {
  const auto complete = watermark();
  const bool is_covered =
      !position || !position->is_number() || (complete && *position <= *complete);
  if (!is_covered) return errc::not_allowed_here;
  return shard_service_wrapper::checkpoint(position ? *position : complete.value_or(nothing()),
                                           deadline);
}

std::optional<sequence_position> clamped_checkpoints::watermark() {
  const auto told = ask_ ? ask_() : std::nullopt;
  const std::lock_guard lock(mutex_);
  if (told && (!watermark_ || *watermark_ < *told)) watermark_ = told;
  return watermark_;
}

}  // namespace kclxx::processing
