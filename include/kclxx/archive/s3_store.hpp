// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive {

/// A bucket of S3, or of a server that has `If-None-Match: *` for PutObject: the first
/// put_if_absent finds out, and throws when it does not. Requests are PutObject, GetObject,
/// HeadObject, CopyObject, DeleteObject and ListObjectsV2. Up to 16 are made at the same time.
///
/// The environment has the rest, under the names that AWS's SDKs use. AWS_REGION or
/// AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for another server than AWS's.
/// Credentials, the first that there are, renewed before they expire:
/// - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
/// - AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, by STS
/// - AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, of ECS and EKS Pod Identity
/// - those of the EC2 instance (IMDSv2), unless AWS_EC2_METADATA_DISABLED is "true"
///
/// Errors: what fails for a reason that may end is tried five times within about 5 s of waits: no
/// answer, 409, 429, 5xx. The text of an error has the server's own words, such as those about a
/// wrong region or clock.
class s3_store final : public store {
 public:
  /// Asks nobody yet. `prefix`: begins the names of all objects; "" or folders.
  /// Errors: std::invalid_argument for an empty bucket, and when no region is set.
  explicit s3_store(std::string bucket, std::string prefix = "");
  ~s3_store() override;

  void put(std::span<const object> objects) override;
  bool put_if_absent(const object& candidate) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
  void move(std::span<const renaming> renamings) override;
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override;
  void remove(std::span<const std::string> names) override;

 private:
  class client;
  std::unique_ptr<client> client_;
};

}  // namespace kclxx::archive
