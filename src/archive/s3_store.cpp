// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <curl/curl.h>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/archive/store.hpp>

#include "archive/folder_store.hpp"
#include "base/file_name.hpp"

namespace kclxx::archive {

namespace {

/// The value of an environment variable; `fallback` when it is not set, or is empty.
std::string variable(const char* name, std::string fallback = "") {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(fallback) : value;
}

// HTTP, by libcurl.

constexpr long stalled_seconds = 15;

std::size_t append(char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

/// Whether the request cannot have reached the server.
bool is_before_sending(CURLcode result) {
  return result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST ||
         result == CURLE_COULDNT_RESOLVE_PROXY || result == CURLE_SSL_CONNECT_ERROR ||
         result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_URL_MALFORMAT ||
         result == CURLE_UNSUPPORTED_PROTOCOL;
}

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
  http_response send(const http_request& request) {
    static const bool is_initialized = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    handle curl;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_handles_.empty()) {
        curl = std::move(idle_handles_.back());
        idle_handles_.pop_back();
      }
    }
    if (!curl) curl.reset(::curl_easy_init());
    if (!is_initialized || !curl) throw std::bad_alloc();
    ::curl_easy_reset(curl.get());  // keeps connections

    http_response response{};
    char error[CURL_ERROR_SIZE] = "";
    const auto set = [&](CURLoption option, auto value) {
      ::curl_easy_setopt(curl.get(), option, value);
    };
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_CONNECTTIMEOUT, request.connect_seconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, stalled_seconds);
    set(CURLOPT_TIMEOUT, 60 + static_cast<long>(request.body.size() >> 18));
    set(CURLOPT_WRITEFUNCTION, &append);
    set(CURLOPT_WRITEDATA, &response.body);
    if (const std::string bundle = variable("AWS_CA_BUNDLE"); !bundle.empty()) {
      set(CURLOPT_CAINFO, bundle.c_str());
    }
    std::vector<std::string> headers = request.headers;
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.data() == nullptr ? "" : request.body.data());
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
      headers.emplace_back("Content-Type: application/octet-stream");
      headers.emplace_back("Expect:");
    }
    const std::string scope = "aws:amz:" + request.region + ":s3";
    if (request.signer != nullptr) {
      set(CURLOPT_AWS_SIGV4, scope.c_str());
      // S3 requires the header, which older versions do not send. TLS protects the body.
      headers.emplace_back("X-Amz-Content-Sha256: UNSIGNED-PAYLOAD");
      set(CURLOPT_USERNAME, request.signer->access_key.c_str());
      set(CURLOPT_PASSWORD, request.signer->secret_key.c_str());
      if (!request.signer->session_token.empty()) {
        headers.push_back("X-Amz-Security-Token: " + request.signer->session_token);
      }
    } else if (request.url.starts_with("http:")) {
      set(CURLOPT_NOPROXY, "*");  // no proxy reaches the metadata of a container or an instance
    }
    std::unique_ptr<curl_slist, decltype(&::curl_slist_free_all)> list(nullptr,
                                                                       ::curl_slist_free_all);
    for (const std::string& header : headers) {
      list.reset(::curl_slist_append(list.release(), header.c_str()));
    }
    set(CURLOPT_HTTPHEADER, list.get());

    const CURLcode result = ::curl_easy_perform(curl.get());
    if (result != CURLE_OK) {
      const std::string text = *error != '\0' ? error : ::curl_easy_strerror(result);
      const auto code = std::make_error_code(std::errc::not_connected);
      if (is_before_sending(result)) throw std::system_error(code, text);
      throw outcome_unknown(code, text);
    }
    ::curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &response.status);
    const std::lock_guard lock(mutex_);
    idle_handles_.push_back(std::move(curl));
    return response;
  }

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
std::string url_encoded(std::string_view text, std::string_view kept = "") {
  return detail::percent_encoded(text, "-_.~" + std::string(kept));
}

/// The text of which S3 has made this part of a URL.
std::string url_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

/// The text of the first element `tag` of an XML document; empty when there is none.
std::string xml_text(std::string_view xml, const std::string& tag) {
  const std::string open = '<' + tag + '>';
  const std::size_t begin = xml.find(open);
  if (begin == std::string_view::npos) return "";
  xml.remove_prefix(begin + open.size());
  std::string text(xml.substr(0, xml.find('<')));
  for (const auto& [entity, character] : {std::pair{"&lt;", "<"},
                                          {"&gt;", ">"},
                                          {"&quot;", "\""},
                                          {"&#34;", "\""},
                                          {"&apos;", "'"},
                                          {"&#39;", "'"},
                                          {"&amp;", "&"}}) {
    for (std::size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at) {
      text.replace(at, std::string_view(entity).size(), character);
    }
  }
  return text;
}

// Credentials.

using std::chrono::system_clock;

[[noreturn]] void refuse(const std::string& reason) {
  throw std::system_error(std::make_error_code(std::errc::permission_denied),
                          "no AWS credentials: " + reason);
}

/// The token in a file, without a newline that an editor may have added.
std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) refuse("cannot read " + file + ": " + std::strerror(errno));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

system_clock::time_point expiry_of(const std::string& text) {
  std::tm parts{};
  // Credentials without a date are fetched again each time.
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return {};
  return system_clock::from_time_t(::timegm(&parts));
}

/// Gets credentials from the environment, or from the source that it names, and keeps them until
/// they are about to expire. Thread safety: any thread.
class credential_source {
 public:
  credential_source(http_client& http, std::string region)
      : http_(http), region_(std::move(region)) {}

  /// Errors: std::system_error when there are none.
  credentials get() {
    const std::lock_guard lock(mutex_);
    const auto now = system_clock::now();
    if (!kept_ || kept_->expiry - std::chrono::minutes(5) < now) {
      try {
        kept_ = fetch();
      } catch (const std::system_error&) {
        if (!kept_ || kept_->expiry < now) throw;
      }
    }
    return kept_->keys;
  }

  /// Forgets the credentials, since the server takes them for expired. get() then asks again.
  void forget() {
    const std::lock_guard lock(mutex_);
    kept_.reset();
  }

 private:
  struct expiring_credentials {
    credentials keys;
    system_clock::time_point expiry;
  };

  expiring_credentials fetch() {
    if (const std::string key = variable("AWS_ACCESS_KEY_ID"); !key.empty()) {
      const std::string secret = variable("AWS_SECRET_ACCESS_KEY");
      if (secret.empty()) refuse("AWS_SECRET_ACCESS_KEY is not set, and AWS_ACCESS_KEY_ID is");
      return {{key, secret, variable("AWS_SESSION_TOKEN")}, system_clock::time_point::max()};
    }

    if (const std::string file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"); !file.empty()) {
      const std::string endpoint =
          variable("AWS_ENDPOINT_URL_STS", "https://sts." + region_ + ".amazonaws.com" +
                                               (region_.starts_with("cn-") ? ".cn" : ""));
      const std::string body = answer_to(
          {.url = endpoint + "/?Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" +
                  url_encoded(variable("AWS_ROLE_ARN")) +
                  "&RoleSessionName=" + url_encoded(variable("AWS_ROLE_SESSION_NAME", "kclxx")) +
                  "&WebIdentityToken=" + url_encoded(content_of(file))},
          "STS");
      if (xml_text(body, "SecretAccessKey").empty()) refuse("the answer of STS has none");
      return {{xml_text(body, "AccessKeyId"), xml_text(body, "SecretAccessKey"),
               xml_text(body, "SessionToken")},
              expiry_of(xml_text(body, "Expiration"))};
    }

    std::string container = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (const std::string path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        !path.empty()) {
      container = "http://169.254.170.2" + path;
    }
    if (!container.empty()) {
      http_request request{.url = container};
      std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
      const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      if (!file.empty()) token = content_of(file);
      if (!token.empty()) request.headers.push_back("Authorization: " + token);
      return from_json(answer_to(std::move(request), container), container);
    }

    if (variable("AWS_EC2_METADATA_DISABLED") == "true") {
      refuse("the environment has none, and AWS_EC2_METADATA_DISABLED is set");
    }
    const std::string instance =
        variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254");
    const std::string source = "the environment has none, and the instance's metadata";
    const std::string token =
        answer_to({.method = "PUT",
                   .url = instance + "/latest/api/token",
                   .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}},
                  source);
    const auto get = [&](const std::string& role) {
      return answer_to({.url = instance + "/latest/meta-data/iam/security-credentials/" + role,
                        .headers = {"X-aws-ec2-metadata-token: " + token}},
                       source);
    };
    const std::string roles = get("");
    return from_json(get(roles.substr(0, roles.find('\n'))), source);
  }

  static expiring_credentials from_json(const std::string& body, const std::string& source) {
    try {
      const auto value = nlohmann::json::parse(body);
      return {{value.at("AccessKeyId"), value.at("SecretAccessKey"), value.at("Token")},
              expiry_of(value.at("Expiration"))};
    } catch (const nlohmann::json::exception& error) {
      refuse(source + ": " + error.what());
    }
  }

  /// The body of the answer. `source`: who is asked, for a message.
  std::string answer_to(http_request request, const std::string& source) {
    request.connect_seconds = 2;
    http_response response{};
    try {
      response = http_.send(request);
    } catch (const std::system_error& error) {
      refuse(source + ": " + error.what());
    }
    if (response.status != 200) {
      const std::string reason = xml_text(response.body, "Message");
      refuse(source + " answers " + std::to_string(response.status) + (reason.empty() ? "" : ": ") +
             reason);
    }
    return response.body;
  }

  http_client& http_;
  const std::string region_;
  std::mutex mutex_;  ///< guards kept_. It is held while credentials are fetched, once for all
  std::optional<expiring_credentials> kept_;
};

// The bucket.

/// A folder of 600 bytes and a file's name of 255 follow, and a key has 1024 bytes at most.
constexpr std::size_t max_prefix_bytes = 1024 - 600 - 255 - 2;
constexpr std::size_t max_requests = 16;
constexpr int max_attempts = 5;

/// Waits before another try: for a random time that doubles with each failure. It is random so that
/// shards do not come back together.
void pause(int failures) {
  thread_local std::minstd_rand random{std::random_device()()};
  const int max_milliseconds = 200 << failures;
  std::uniform_int_distribution<int> distribution(max_milliseconds / 2, max_milliseconds);
  std::this_thread::sleep_for(std::chrono::milliseconds(distribution(random)));
}

/// Calls work(0) to work(count - 1), several at the same time. After an error no further call
/// begins. Errors: the first error of a call.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (std::size_t index = next++; index < count; index = next++) work(index);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    while (threads.size() + 1 < std::min(count, max_requests)) threads.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

std::string region_of_environment() {
  std::string region = variable("AWS_REGION", variable("AWS_DEFAULT_REGION"));
  if (region.empty()) throw std::invalid_argument("AWS_REGION is not set");
  return region;
}

/// Sends requests about one bucket. Thread safety: any thread.
class s3_client {
 public:
  /// `prefix`: the beginning of the names of all objects, folders or "".
  s3_client(std::string bucket, std::string prefix)
      : bucket_(std::move(bucket)), prefix_(std::move(prefix)) {
    if (bucket_.empty()) throw std::invalid_argument("an s3:// location has no bucket");
    while (prefix_.ends_with('/')) prefix_.pop_back();
    if (prefix_.size() > max_prefix_bytes) {
      throw std::invalid_argument("the prefix of an s3:// location has more than " +
                                  std::to_string(max_prefix_bytes) + " bytes");
    }
    if (!prefix_.empty()) prefix_ += '/';
    std::string endpoint = variable("AWS_ENDPOINT_URL_S3", variable("AWS_ENDPOINT_URL"));
    const std::string host =
        "s3." + region_ + ".amazonaws.com" + (region_.starts_with("cn-") ? ".cn" : "");
    if (!endpoint.empty()) {
      while (endpoint.ends_with('/')) endpoint.pop_back();
      base_ = endpoint + '/' + bucket_;
    } else if (bucket_.find('.') != std::string::npos) {  // no certificate has such a host
      base_ = "https://" + host + '/' + bucket_;
    } else {
      base_ = "https://" + bucket_ + '.' + host;
    }
  }

  /// Sends a request about the object `name`, or about the bucket if that is empty. `query` is
  /// sorted and encoded. `expected`: statuses besides 200 and 204 that are no error.
  http_response send(const std::string& method, const std::string& name, std::string_view body = {},
                     std::vector<std::string> headers = {}, const std::string& query = {},
                     std::initializer_list<long> expected = {}) {
    const std::string key = name.empty() ? "" : prefix_ + name;
    const std::string url =
        base_ + '/' + url_encoded(key, "/") + (query.empty() ? "" : "?") + query;
    const std::string what = method + " s3://" + bucket_ + '/' + key;
    const bool is_copy = !headers.empty() && headers.front().starts_with("X-Amz-Copy-Source");
    bool may_be_done = false;
    for (int failures = 1;; ++failures) {
      std::string reason;
      auto code = std::make_error_code(std::errc::io_error);
      bool is_temporary = true;
      try {
        const credentials keys = credentials_.get();
        http_response response = http_.send({.method = method,
                                             .url = url,
                                             .headers = headers,
                                             .body = body,
                                             .signer = &keys,
                                             .region = region_});
        const std::string error = xml_text(response.body, "Code");
        const bool is_success = response.status == 200 || response.status == 204;
        // A copy that fails after a while has begun with status 200, and the page of a proxy has
        // it, too. The answer to a PutObject is empty.
        const bool is_copied = response.body.find("</CopyObjectResult>") != std::string::npos;
        const bool is_foreign =
            is_success && method == "PUT" && (is_copy ? !is_copied : !response.body.empty());
        if ((is_success && !is_foreign) ||
            std::find(expected.begin(), expected.end(), response.status) != expected.end()) {
          return response;
        }
        if (error == "ExpiredToken") credentials_.forget();
        is_temporary = is_foreign || response.status >= 500 || response.status == 409 ||
                       response.status == 429 || error == "RequestTimeout" ||
                       error == "ExpiredToken";
        may_be_done = may_be_done || is_foreign || response.status >= 500;
        reason = std::to_string(response.status) + ' ' + error + ": " +
                 xml_text(response.body, "Message");
        if (response.status == 403) code = std::make_error_code(std::errc::permission_denied);
        if (error == "KeyTooLongError") {
          code = std::make_error_code(std::errc::filename_too_long);
        }
      } catch (const outcome_unknown& error) {
        may_be_done = true;
        code = error.code();
        reason = error.what();
      } catch (const std::system_error& error) {
        code = error.code();
        is_temporary = code != std::errc::permission_denied;
        reason = error.what();
      }
      // The exception below adds the message of the code.
      if (const std::string text = ": " + code.message(); reason.ends_with(text)) {
        reason.resize(reason.size() - text.size());
      }
      if (is_temporary && failures < max_attempts) {
        pause(failures);
        continue;
      }
      if (may_be_done) throw outcome_unknown(code, what + ": " + reason);
      throw std::system_error(code, what + ": " + reason);
    }
  }

  /// Finds out whether the server refuses to make an object a second time. Servers other than AWS's
  /// may ignore the condition.
  void require_condition() {
    const std::lock_guard lock(mutex_);
    const auto is_refused = [&] {
      return send("PUT", "_kclxx.probe", "", {"If-None-Match: *"}, "", {412}).status == 412;
    };
    if (!has_condition_ && !is_refused() && !is_refused()) {
      throw std::system_error(std::make_error_code(std::errc::operation_not_supported),
                              "s3://" + bucket_ +
                                  " ignores If-None-Match, so two workers could "
                                  "make the same commit");
    }
    has_condition_ = true;
  }

  [[nodiscard]] std::string copy_source(const std::string& name) const {
    return "X-Amz-Copy-Source: /" + bucket_ + '/' + url_encoded(prefix_ + name, "/");
  }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  const std::string bucket_;
  std::string prefix_;
  const std::string region_ = region_of_environment();
  std::string base_;  ///< a URL up to the slash before the object's key
  http_client http_;
  credential_source credentials_{http_, region_};
  std::mutex mutex_;  ///< guards has_condition_
  bool has_condition_ = false;
};

class s3_store final : public store {
 public:
  s3_store(std::string bucket, std::string prefix)
      : client_(std::move(bucket), std::move(prefix)) {}

  void put(std::span<const object> objects) override {
    in_parallel(objects.size(), [&](std::size_t index) {
      client_.send("PUT", objects[index].name, objects[index].content);
    });
  }
  bool put_if_absent(const object& candidate) override {
    client_.require_condition();
    const auto response =
        client_.send("PUT", candidate.name, candidate.content, {"If-None-Match: *"}, "", {412});
    return response.status != 412;
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
    http_response response = client_.send("GET", name, {}, {}, "", {404});
    if (response.status != 404) return std::move(response.body);
    require_no_such_key(response, "GET " + name);
    return std::nullopt;
  }
  void move(std::span<const renaming> renamings) override {
    in_parallel(renamings.size(), [&](std::size_t index) {
      const auto& [from, to] = renamings[index];
      const auto copied = client_.send("PUT", to, {}, {client_.copy_source(from)}, "", {404});
      if (copied.status == 404) {
        require_no_such_key(copied, "PUT " + to);
        // The move was made before, or something else has removed the object.
        if (client_.send("HEAD", to, {}, {}, "", {404}).status == 404) {
          throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                                  "cannot move " + from + " to " + to + ", neither is there");
        }
      } else {
        client_.send("DELETE", from);
      }
    });
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> names;
    std::string token;
    do {
      std::string query = token.empty() ? "" : "continuation-token=" + url_encoded(token) + '&';
      query +=
          "encoding-type=url&list-type=2&prefix=" + url_encoded(client_.prefix() + folder + '/');
      const std::string body = client_.send("GET", "", {}, {}, query).body;
      if (body.find("</ListBucketResult>") == std::string::npos) {
        throw std::system_error(std::make_error_code(std::errc::bad_message),
                                "GET " + folder + ": the answer is no list of objects");
      }
      const bool is_encoded = xml_text(body, "EncodingType") == "url";
      for (std::size_t at = 0; (at = body.find("<Contents>", at)) != std::string::npos; ++at) {
        std::string key = xml_text(std::string_view(body).substr(at), "Key");
        if (is_encoded) key = url_decoded(key);
        names.push_back(key.substr(std::min(key.size(), client_.prefix().size())));
      }
      token = xml_text(body, "NextContinuationToken");
    } while (!token.empty());
    return names;
  }
  void remove(std::span<const std::string> names) override {
    in_parallel(names.size(), [&](std::size_t index) {
      client_.send("DELETE", names[index], {}, {}, "", {404});
    });
  }

 private:
  /// The bucket may be missing, or the answer may be a proxy's.
  static void require_no_such_key(const http_response& not_found, const std::string& what) {
    if (xml_text(not_found.body, "Code") == "NoSuchKey") return;
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            what + ": 404 " + xml_text(not_found.body, "Message"));
  }

  mutable s3_client client_;
};

}  // namespace

std::shared_ptr<store> open_store(const std::string& location) {
  constexpr std::string_view scheme = "s3://";
  if (!location.starts_with(scheme)) return open_folder(location);
  const std::string place = location.substr(scheme.size());
  const std::size_t slash = std::min(place.find('/'), place.size());
  return std::make_shared<s3_store>(place.substr(0, slash),
                                    place.substr(std::min(slash + 1, place.size())));
}

}  // namespace kclxx::archive
