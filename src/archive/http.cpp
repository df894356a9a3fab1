// SPDX-License-Identifier: Apache-2.0
#include "archive/http.hpp"

#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive {

namespace {

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

}  // namespace

http_response http_client::send(const http_request& request) {
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

std::string url_encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
  std::string encoded;
  for (const char c : text) {
    if (unreserved.find(c) != std::string_view::npos || kept.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      encoded += "0123456789ABCDEF"[c & 15];
    }
  }
  return encoded;
}

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

std::string variable(const char* name, std::string fallback) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(fallback) : value;
}

}  // namespace kclxx::archive
