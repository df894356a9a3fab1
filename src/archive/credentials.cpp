// SPDX-License-Identifier: Apache-2.0
#include "archive/credentials.hpp"

#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace kclxx::archive {

namespace {

using std::chrono::system_clock;

[[noreturn]] void refuse(const std::string& reason) {
  throw std::system_error(std::make_error_code(std::errc::permission_denied),
                          "no AWS credentials: " + reason);
}

/// The token in a file, without a newline that an editor may have added.
std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) refuse("cannot read " + file);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

system_clock::time_point expiry_of(const std::string& text) {
  std::tm parts{};
  // Credentials without a date are fetched again each time.
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return {};
  return system_clock::from_time_t(::timegm(&parts));
}

}  // namespace

credentials credential_source::get() {
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

void credential_source::forget() {
  const std::lock_guard lock(mutex_);
  kept_.reset();
}

std::string credential_source::answer_to(http_request request, const std::string& source) {
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

credential_source::expiring_credentials credential_source::from_json(const std::string& body,
                                                                     const std::string& source) {
  try {
    const auto value = nlohmann::json::parse(body);
    return {{value.at("AccessKeyId"), value.at("SecretAccessKey"), value.at("Token")},
            expiry_of(value.at("Expiration"))};
  } catch (const nlohmann::json::exception& error) {
    refuse(source + ": " + error.what());
  }
}

credential_source::expiring_credentials credential_source::fetch() {
  if (const std::string key = variable("AWS_ACCESS_KEY_ID"); !key.empty()) {
    return {{key, variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")},
            system_clock::time_point::max()};
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
    return {{xml_text(body, "AccessKeyId"), xml_text(body, "SecretAccessKey"),
             xml_text(body, "SessionToken")},
            expiry_of(xml_text(body, "Expiration"))};
  }

  std::string container = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty()) {
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
  const std::string token = answer_to({.method = "PUT",
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

}  // namespace kclxx::archive
