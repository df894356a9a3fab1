// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// What a processor can know about its shard.
///
/// Lifetime: as long as the processor; it may keep the reference that `initialize` gets.
/// Thread safety: all functions may be called from any thread.
class shard_context {
 public:
  using clock = std::chrono::steady_clock;

  /// What a context is made of; the runtime fills one in, and so can a test.
  struct fields {
    std::string shard_id{};
    std::optional<sequence_position> start_position{};
    std::stop_token stop_token{};
    std::function<clock::time_point()> now = [] { return clock::now(); };
    std::optional<std::string> stream_name{};
    std::optional<std::string> application_name{};
    std::optional<std::string> worker_id{};
  };

  explicit shard_context(fields from) : fields_(std::move(from)) {}
  shard_context(const shard_context&) = delete;
  shard_context& operator=(const shard_context&) = delete;
  ~shard_context() = default;

  /// For instance "shardId-000000000003".
  [[nodiscard]] const std::string& shard_id() const noexcept { return fields_.shard_id; }

  /// Where reading begins: behind this position, or at a sentinel such as TRIM_HORIZON.
  /// std::nullopt when the daemon did not say.
  [[nodiscard]] const std::optional<sequence_position>& start_position() const noexcept {
    return fields_.start_position;
  }

  /// Stops when this shard's work is in vain: its lease is lost, the daemon went away, or the
  /// process leaves. A callback that works for long should look at it, and then return.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return fields_.stop_token; }

  /// The processor's clock: real time under the daemon, virtual time in the test kit.
  [[nodiscard]] clock::time_point now() const { return fields_.now(); }

  /// The stream's, application's and worker's names, from the environment variables
  /// KCLXX_STREAM_NAME, KCLXX_APPLICATION_NAME and KCLXX_WORKER_ID; the daemon itself does not
  /// tell its children.
  [[nodiscard]] const std::optional<std::string>& stream_name() const noexcept {
    return fields_.stream_name;
  }
  [[nodiscard]] const std::optional<std::string>& application_name() const noexcept {
    return fields_.application_name;
  }
  [[nodiscard]] const std::optional<std::string>& worker_id() const noexcept {
    return fields_.worker_id;
  }

 private:
  fields fields_;
};

}  // namespace kclxx
