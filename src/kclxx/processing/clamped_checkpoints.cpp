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
  requests covered;
  {
    const std::lock_guard lock(mutex_);
    change();
    // Nodes are moved, so that nothing is lost when there is no memory.
    while (!of_open_record_.empty() && (is_released_ || !is_open_)) {
      auto held = of_open_record_.extract(of_open_record_.begin());
      held.key() = watermark_.value_or(nothing());
      covered.insert(std::move(held));
    }
    const auto is_covered = [this](const sequence_position& target) {
      return is_released_ || (watermark_ && target <= *watermark_);
    };
    while (!waiting_.empty() && is_covered(waiting_.begin()->first)) {
      covered.insert(waiting_.extract(waiting_.begin()));
    }
    is_awaited_ = !waiting_.empty() || !of_open_record_.empty();
  }
  for (auto& [target, handler] : covered) {
    shard_service_wrapper::async_checkpoint(target, std::move(handler));
  }
}

void clamped_checkpoints::pass(const sequence_position& watermark, bool is_open_complete) {
  send_after([&] {
    if (!watermark_ || *watermark_ < watermark) watermark_ = watermark;
    while (is_open_complete && !of_open_record_.empty()) {
      auto held = of_open_record_.extract(of_open_record_.begin());
      held.key() = *watermark_;
      waiting_.insert(std::move(held));
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
  requests rest;
  {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    is_awaited_ = false;
    rest.swap(waiting_);
    rest.merge(of_open_record_);
  }
  for (auto& [target, handler] : rest) {
    try {
      if (handler) handler(errc::daemon_gone);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the session is over
    }
  }
}

void clamped_checkpoints::async_checkpoint(const std::optional<sequence_position>& position,
                                           checkpoint_handler handler) {
  if (position && !position->is_number()) {
    return shard_service_wrapper::async_checkpoint(position, std::move(handler));
  }
  {
    const std::lock_guard lock(mutex_);
    (position ? waiting_ : of_open_record_)
        .emplace(position.value_or(nothing()), std::move(handler));
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
