// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <kclxx/error.hpp>

#include "base/printable.hpp"

namespace kclxx {

namespace {

std::string unknown(int value) { return "unknown error " + std::to_string(value); }

class local_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::lease_lost:
        return "the lease is lost: another worker continues from the last checkpoint; drop the "
               "work";
      case errc::daemon_gone:
        return "the daemon is gone: the records will be delivered again; return from the callback";
      case errc::timed_out:
        return "no answer before the deadline: the position stays pending; allow more time";
      case errc::position_out_of_range:
        return "the position is after the last record delivered to this process: checkpoint one "
               "of those, or call without a position";
      case errc::invalid_position:
        return "a sentinel cannot be checkpointed: give the position of a record";
      case errc::not_allowed_here:
        return "nothing can wait for a checkpoint in a timer: use async_checkpoint, and return";
      case errc::not_answered:
        return "the daemon sent its next message without answering the checkpoint: try again";
      case errc::fenced:
        return "fenced: a later processor has taken the shard over; drop the work";
    }
    return unknown(value);
  }
};

class daemon_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx.checkpoint"; }
  [[nodiscard]] std::string message(int value) const override {
    const std::string name(daemon_error_name({value, *this}));
    switch (static_cast<checkpoint_errc>(value)) {
      case checkpoint_errc::throttled:
        return name +
               ": the lease table is throttled; checkpoint less often, or raise its capacity";
      case checkpoint_errc::dependency:
        return name +
               ": the lease table cannot be reached; see the daemon's log, and try again later";
      case checkpoint_errc::shutdown:
        return name + ": this worker no longer holds the lease; drop the work";
      case checkpoint_errc::invalid_state:
        return name +
               ": the lease table is broken, or no checkpoint is permitted now; see the "
               "daemon's log";
      case checkpoint_errc::illegal_argument:
        return name +
               ": the position is out of range; use one between the last checkpoint and "
               "the last record";
      case checkpoint_errc::other:
        return "the daemon reported an exception that kclxx does not know; the log has its name";
    }
    return unknown(value);
  }
};

class conditions final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx.condition"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<checkpoint_condition>(value)) {
      case checkpoint_condition::lease_gone:
        return "this worker no longer holds the lease";
      case checkpoint_condition::retryable:
        return "the checkpoint failed for now";
    }
    return unknown(value);
  }
  [[nodiscard]] bool equivalent(const std::error_code& code, int value) const noexcept override {
    switch (static_cast<checkpoint_condition>(value)) {
      case checkpoint_condition::lease_gone:
        return code == errc::lease_lost || code == errc::fenced ||
               code == checkpoint_errc::shutdown;
      case checkpoint_condition::retryable:
        return code == checkpoint_errc::throttled || code == checkpoint_errc::dependency;
    }
    return false;
  }
};

/// An object that is never destroyed: a code may outlive everything.
template <class Category>
const Category& immortal() noexcept {
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the process ends
  static const Category& category = *new Category;
  return category;
}

}  // namespace

const std::error_category& local_category() noexcept { return immortal<local_errors>(); }

const std::error_category& checkpoint_category() noexcept { return immortal<daemon_errors>(); }

const std::error_category& checkpoint_condition_category() noexcept {
  return immortal<conditions>();
}

std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), local_category()};
}

std::error_code make_error_code(checkpoint_errc value) noexcept {
  return {static_cast<int>(value), checkpoint_category()};
}

std::error_condition make_error_condition(checkpoint_condition value) noexcept {
  return {static_cast<int>(value), checkpoint_condition_category()};
}

std::error_code make_checkpoint_error_code(std::string_view daemon_name) noexcept {
  const auto& listed = detail::exception_names;
  const auto found = std::find(listed.begin(), listed.end(), daemon_name);
  return static_cast<checkpoint_errc>(found - listed.begin() + 1);
}

std::string_view daemon_error_name(const std::error_code& code) noexcept {
  if (code.category() != checkpoint_category()) return {};
  const int value = code.value();
  const auto& listed = detail::exception_names;
  if (value < 1 || value > static_cast<int>(listed.size())) return {};
  return listed[static_cast<std::size_t>(value - 1)];
}

}  // namespace kclxx
