// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "archive/http.hpp"

namespace kclxx::archive {

/// Gets credentials from the environment, or from the source that it names, and keeps them until
/// they are about to expire. Thread safety: any thread.
class credential_source {
 public:
  credential_source(http_client& http, std::string region)
      : http_(http), region_(std::move(region)) {}

  /// Errors: std::system_error when there are none.
  credentials get();
  /// Forgets the credentials, since the server takes them for expired. get() then asks again.
  void forget();

 private:
  struct expiring_credentials {
    credentials keys;
    std::chrono::system_clock::time_point expiry;
  };

  expiring_credentials fetch();
  static expiring_credentials from_json(const std::string& body, const std::string& source);
  /// The body of the answer. `source`: who is asked, for a message.
  std::string answer_to(http_request request, const std::string& source);

  http_client& http_;
  const std::string region_;
  std::mutex mutex_;  ///< guards kept_. It is held while credentials are fetched, once for all
  std::optional<expiring_credentials> kept_;
};

}  // namespace kclxx::archive
