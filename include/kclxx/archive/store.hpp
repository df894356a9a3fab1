// SPDX-License-Identifier: Apache-2.0
// The component kclxx::archive: find_package(kclxx COMPONENTS archive). docs/exactly-once.md is its
// guide. See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace kclxx::archive {

/// What a store keeps under a name, as a whole.
struct object {
  std::string name;  ///< folders, separated by slashes, and a last part
  /// The bytes of the object.
  std::string content;
};

/// The present and the later name of an object.
struct renaming {
  /// The present name.
  std::string from;
  /// The later name.
  std::string to;
};

/// It is not known whether a change has happened. It may also happen at a later time.
class outcome_unknown : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// What a commit_log needs of a store. A change is durable when its function returns.
///
/// Errors: std::system_error from each function. If it was to make several changes, some may have
/// happened. The change that failed may still happen after an outcome_unknown, and never does after
/// another error.
/// Thread safety: any thread of any process may call all functions.
/// Blocking: until the store has answered.
class store {
 public:
  store() = default;
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  virtual ~store() = default;

  /// Makes objects of one folder. No other call uses their names. They are durable when the next
  /// put_if_absent in this folder returns.
  virtual void put(std::span<const object> objects) = 0;
  /// Makes an object unless its name is taken. False: there is an object of that name. Its content
  /// tells whether this call has made it, and the answer was lost.
  virtual bool put_if_absent(const object& candidate) = 0;
  /// The content of an object; std::nullopt when there is no object of that name.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& name) const = 0;
  /// Renames objects of one folder. An object that has its later name already is left as it is.
  /// Errors: also when there is no object of either name.
  virtual void move(std::span<const renaming> renamings) = 0;
  /// The names of all objects whose name begins with `folder` and a slash, in any order.
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& folder) const = 0;
  /// Removes objects. A name without an object is ignored.
  virtual void remove(std::span<const std::string> names) = 0;
};

/// Opens the store at a location: a bucket of S3 for `s3://BUCKET` or `s3://BUCKET/PREFIX`, and a
/// folder for anything else.
///
/// A folder. Its file system needs hard links, and no locks: local file systems, NFS 4 mounted
/// `hard`, EFS and CephFS are fit. Several hosts may share it. SMB, FAT and S3 mounted by FUSE have
/// no hard links, and are refused. The store never makes the folder. When its path leads to another
/// folder or nowhere, as after an unmount, each function throws until it leads back. Name a folder
/// inside of a mounted volume, and not the mount point, which exists without the volume, too.
///
/// A bucket, of AWS or of a server that has `If-None-Match: *` for PutObject: the first
/// put_if_absent finds out, and throws when the server ignores it. Requests are PutObject,
/// GetObject, HeadObject, CopyObject, DeleteObject and ListObjectsV2. Up to 16 are made at the same
/// time. A request that fails for a reason that may pass (no answer, 409, 429, 5xx) is tried five
/// times, with about 5 s of waits. The environment has the settings, under the names that AWS's
/// SDKs use: AWS_REGION or AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a server
/// that is not AWS's. Credentials come from the first of these sources, and are renewed before they
/// expire:
/// - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
/// - AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, by STS
/// - AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, of ECS and EKS Pod Identity
/// - those of the EC2 instance (IMDSv2), unless AWS_EC2_METADATA_DISABLED is "true"
///
/// Errors: std::system_error when there is no such folder, or it has no hard links. A bucket is not
/// asked yet: std::invalid_argument when its name is empty, PREFIX has more than 167 bytes, or no
/// region is set. Later errors have the server's own words, such as those about a wrong region or
/// clock.
[[nodiscard]] std::shared_ptr<store> open_store(const std::string& location);

/// For failure_policy::is_outage: each std::system_error is an outage, but for a name that is too
/// long for the store, or not allowed in it. Such a name is the fault of the record that it is
/// from.
[[nodiscard]] inline bool is_outage(const std::exception& error) {
  const auto* failure = dynamic_cast<const std::system_error*>(&error);
  return failure != nullptr && failure->code() != std::errc::filename_too_long &&
         failure->code() != std::errc::invalid_argument;
}

}  // namespace kclxx::archive
