// SPDX-License-Identifier: Apache-2.0
#include "processing/patience.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/environment.hpp"

namespace kclxx::processing {

namespace {

using std::chrono::milliseconds;

/// A positive whole number.
std::optional<std::int64_t> number_in_environment(const char* name) {
  const std::string text = detail::own_environment(name).value_or("");
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return std::min(number, std::int64_t{1'000'000'000'000});  // so that a product does not overflow
}

}  // namespace

void warn_of_patience(const failure_policy& policy, const shard_context& shard) {
  const std::optional<milliseconds> patience = policy.patience();
  const std::string waits =
      "failure_policy: a record that fails is tried again " +
      (patience ? "for up to " + std::to_string(patience->count()) + " ms" : "without end") +
      ", longer than ";
  const auto warn = [&](std::int64_t limit, const std::string& name, const char* consequence) {
    if (patience && patience->count() <= limit) return;
    shard.log(log_level::warning,
              waits + name + " (" + std::to_string(limit) + " ms): " + consequence);
  };
  if (const auto timeout = number_in_environment("KCLXX_TIMEOUT_IN_SECONDS")) {
    warn(*timeout * 1000, "timeoutInSeconds", "the daemon then halts with all its shards");
  }
  if (!patience) return;  // to wait for as long as it takes is what the policy is for
  if (const auto grace = number_in_environment("KCLXX_SHUTDOWN_GRACE_MILLIS")) {
    warn(*grace, "shutdownGraceMillis", "a stop of the daemon does not wait for the record");
  }
  if (detail::own_environment("KCLXX_RETRIEVAL_MODE") == "FANOUT") {
    warn(30'000, "what enhanced fan-out allows",
         "the daemon then warns, or subscribes to the shard again");
  }
}

}  // namespace kclxx::processing
