// SPDX-License-Identifier: Apache-2.0
// The component kclxx::archive: find_package(kclxx COMPONENTS archive). docs/exactly-once.md is its
// guide. See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Whether a change was made is not known: it may have been made, and may still be made later.
class outcome_unknown : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// What a commit_log needs of a store. A change is durable when its function returns.
///
/// Errors: std::system_error from each function. Of several changes some may then be made. After an
/// outcome_unknown the change that failed may still be made; after another error it never is.
/// Thread safety: any thread of any process may call all functions.
/// Blocking: until the store has answered.
class store {
 public:
  store() = default;
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  virtual ~store() = default;

  /// Makes objects of one folder. Nobody else uses their names. They are durable when the next
  /// put_if_absent in this folder returns.
  virtual void put(std::span<const object> objects) = 0;
  /// Makes an object unless its name is taken. False: an object of that name is there; its content
  /// tells whether this call has made it, and the answer was lost.
  virtual bool put_if_absent(const object& candidate) = 0;
  /// std::nullopt when there is no object of that name.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& name) const = 0;
  /// Renames objects of one folder. An object that has its later name already is left as it is.
  /// Errors: also when there is no object of either name.
  virtual void move(std::span<const renaming> renamings) = 0;
  /// The names of all objects whose name begins with `folder` and a slash, in any order.
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& folder) const = 0;
  /// Objects that are not there are ignored.
  virtual void remove(std::span<const std::string> names) = 0;
};

/// `s3://BUCKET` or `s3://BUCKET/PREFIX`: an s3_store. Anything else: a folder_store.
/// Errors: as their constructors.
[[nodiscard]] std::shared_ptr<store> open_store(const std::string& location);

/// For failure_policy::is_outage: each std::system_error is an outage, except that a name is too
/// long for the store, or not allowed in it. That is the fault of the record that the name is from.
[[nodiscard]] inline bool is_outage(const std::exception& error) {
  const auto* failure = dynamic_cast<const std::system_error*>(&error);
  return failure != nullptr && failure->code() != std::errc::filename_too_long &&
         failure->code() != std::errc::invalid_argument;
}

}  // namespace kclxx::archive
