// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <kclxx/run_options.hpp>

namespace kclxx::runtime {

/// Sends the library's messages to the user's function, or to stderr with one write per line
/// ("kclxx shardId-000000000003 warning: ..."), unbuffered, so that nothing is lost by _Exit.
///
/// Thread safety: all functions from any thread. Never call it under the session's lock: the
/// user's function may call back.
class logger {
 public:
  explicit logger(std::function<void(log_level, std::string_view)> destination)
      : destination_(std::move(destination)) {}

  void set_shard(const std::string& shard_id);
  void operator()(log_level level, std::string_view text) const noexcept;

 private:
  std::function<void(log_level, std::string_view)> destination_;
  mutable std::mutex mutex_;
  std::string shard_id_;
};

}  // namespace kclxx::runtime
