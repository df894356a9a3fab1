// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "archive/http.hpp"

namespace kclxx::archive {

/// Credentials from the environment, or from where it points to; kept until they are about to
/// expire. Thread safety: any thread.
class credential_source {
 public:
  credential_source(http_client& http, std::string region)
      : http_(http), region_(std::move(region)) {}

  /// Errors: std::system_error when there are none.
  credentials get();
  /// Asks again next time: the server takes them for expired.
  void forget();

 private:
  struct dated {
    credentials keys;
    std::chrono::system_clock::time_point expiry;
  };

  dated fetch();
  static dated from_json(const std::string& body, const std::string& source);
  std::string fetched(http_request request, const std::string& source);

  http_client& http_;
  const std::string region_;
  std::mutex mutex_;
  std::optional<dated> kept_;
};

}  // namespace kclxx::archive
