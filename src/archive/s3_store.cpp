// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
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

#include "archive/credentials.hpp"
#include "archive/folder_store.hpp"
#include "archive/http.hpp"

namespace kclxx::archive {

namespace {

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
        // A copy that fails after a while has begun with status 200.
        const bool is_copy_failed = is_success && method == "PUT" && !error.empty();
        if ((is_success && !is_copy_failed) ||
            std::find(expected.begin(), expected.end(), response.status) != expected.end()) {
          return response;
        }
        if (error == "ExpiredToken") credentials_.forget();
        is_temporary = is_copy_failed || response.status >= 500 || response.status == 409 ||
                       response.status == 429 || error == "RequestTimeout" ||
                       error == "ExpiredToken";
        may_be_done = may_be_done || is_copy_failed || response.status >= 500;
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
    if (response.status == 404 && xml_text(response.body, "Code") != "NoSuchKey") {
      throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                              "GET " + name + ": " + xml_text(response.body, "Message"));
    }
    return response.status == 404 ? std::nullopt : std::optional(std::move(response.body));
  }
  void move(std::span<const renaming> renamings) override {
    in_parallel(renamings.size(), [&](std::size_t index) {
      const auto& [from, to] = renamings[index];
      const auto copied = client_.send("PUT", to, {}, {client_.copy_source(from)}, "", {404});
      if (copied.status == 404) {
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
