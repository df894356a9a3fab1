// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::archive {

struct credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token{};  // empty when there is none
};

struct http_request {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers{};
  std::string_view body{};
  /// The request is signed for S3 in `region` with these credentials; null: it is not signed.
  const credentials* signer = nullptr;
  std::string region{};
  long connect_seconds = 5;  ///< the limit for the connection
};

struct http_response {
  long status;
  std::string body;
};

/// Sends requests, and keeps connections for the next ones.
/// Thread safety: any thread.
class http_client {
 public:
  /// Errors: outcome_unknown when there is no whole answer, std::system_error when the request
  /// cannot have reached the server.
  http_response send(const http_request& request);

 private:
  struct cleanup {
    void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
  };
  using handle = std::unique_ptr<CURL, cleanup>;

  std::mutex mutex_;  ///< guards idle_handles_
  std::vector<handle> idle_handles_;
};

/// The text as a part of a URL: all bytes but A-Z, a-z, 0-9, '-', '_', '.', '~' and those of `kept`
/// become %XX. libcurl signs a URL as it is, so it has to be encoded as AWS encodes it (RFC 3986).
std::string url_encoded(std::string_view text, std::string_view kept = "");
/// The text of which S3 has made this part of a URL.
std::string url_decoded(const std::string& text);

/// The text of the first element `tag` of an XML document; empty when there is none.
std::string xml_text(std::string_view xml, const std::string& tag);

/// The value of an environment variable; `fallback` when it is not set, or is empty.
std::string variable(const char* name, std::string fallback = "");

}  // namespace kclxx::archive
