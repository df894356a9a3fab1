// SPDX-License-Identifier: Apache-2.0
#include <kclxx/error.hpp>

namespace kclxx {

namespace {

class local_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::lease_lost:
        return "the lease is lost: another worker goes on from the last checkpoint; drop the work";
      case errc::daemon_gone:
        return "the daemon is gone: the records will be delivered again; end in order";
      case errc::timed_out:
        return "no answer before the deadline: the position stays pending; give it more time";
      case errc::not_delivered:
        return "the position lies beyond the last record delivered to this process: checkpoint one "
               "of those, or call without a position";
      case errc::not_a_number:
        return "a sentinel cannot be checkpointed: give the position of a record";
      case errc::not_allowed_here:
        return "nothing can be checkpointed in initialize and lease_lost: wait for records";
      case errc::not_answered:
        return "the daemon went on without answering the checkpoint: try again";
    }
    return "unknown error " + std::to_string(value);
  }
};

class daemon_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx.checkpoint"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<checkpoint_errc>(value)) {
      case checkpoint_errc::throttled:
        return "the lease table is throttled: checkpoint less often, or raise its capacity";
      case checkpoint_errc::dependency:
        return "the lease table could not be reached: try again later; see the daemon's log";
      case checkpoint_errc::shutdown:
        return "this worker no longer holds the lease: drop the work";
      case checkpoint_errc::invalid_state:
        return "the lease table is broken or the phase wrong: see the daemon's log";
      case checkpoint_errc::illegal_argument:
        return "the position is out of range: checkpoint between the last one and the last record";
      case checkpoint_errc::other:
        return "the checkpoint failed: see the daemon's log";
    }
    return "unknown error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& local_category() noexcept {
  static const local_errors category;
  return category;
}

const std::error_category& checkpoint_category() noexcept {
  static const daemon_errors category;
  return category;
}

std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), local_category()};
}

std::error_code make_error_code(checkpoint_errc value) noexcept {
  return {static_cast<int>(value), checkpoint_category()};
}

checkpoint_errc checkpoint_errc_from_name(std::string_view name) noexcept {
  if (name == "ThrottlingException") return checkpoint_errc::throttled;
  if (name == "KinesisClientLibDependencyException") return checkpoint_errc::dependency;
  if (name == "ShutdownException") return checkpoint_errc::shutdown;
  if (name == "InvalidStateException") return checkpoint_errc::invalid_state;
  if (name == "IllegalArgumentException") return checkpoint_errc::illegal_argument;
  return checkpoint_errc::other;
}

bool is_retryable(checkpoint_errc value) noexcept {
  return value == checkpoint_errc::throttled || value == checkpoint_errc::dependency;
}

}  // namespace kclxx
