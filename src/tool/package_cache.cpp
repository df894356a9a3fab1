// SPDX-License-Identifier: Apache-2.0
#include "tool/package_cache.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <system_error>

#include "io/descriptor.hpp"
#include "tool/command_error.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

std::string partial_prefix(const fs::path& place) { return "." + place.filename().string() + "."; }

/// Held while a partial folder exists that is not locked yet, and while others are removed.
io::descriptor locked_parent(const fs::path& place) {
  const fs::path parent = place.parent_path();
  io::descriptor lock(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (lock.is_open() && ::flock(lock.get(), LOCK_EX) == -1) {
    if (errno != EINTR) return {};
  }
  return lock;
}

/// Removes the partial folders that no process fills any more. `parent` is the lock. A leftover
/// only takes up space, so a failure is not reported: the cache may be read-only.
void remove_leftovers(const fs::path& place, const io::descriptor& parent) {
  if (!parent.is_open()) return;
  std::error_code error;
  for (fs::directory_iterator at(place.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (!at->path().filename().string().starts_with(partial_prefix(place))) continue;
    const io::descriptor folder(::open(at->path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open() || ::flock(folder.get(), LOCK_EX | LOCK_NB) == -1) continue;
    std::error_code ignored;
    fs::remove_all(at->path(), ignored);
  }
}

/// A folder beside its later place, locked as long as this process or a program that it started
/// lives. Removed with this object, unless it was renamed.
class partial_folder {
 public:
  explicit partial_folder(const fs::path& place) {
    const io::descriptor parent = locked_parent(place);
    if (!parent.is_open()) cannot_set_up(place.parent_path(), "opened and locked");
    remove_leftovers(place, parent);
    std::string name = (place.parent_path() / (partial_prefix(place) + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) cannot_set_up(name, "made");
    path_ = name;
    // Inherited on purpose.
    lock_ = io::descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
    if (!lock_.is_open()) cannot_set_up(path_, "opened");
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == -1) cannot_set_up(path_, "locked");
  }
  ~partial_folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  partial_folder(const partial_folder&) = delete;
  partial_folder& operator=(const partial_folder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

  /// False: another folder is already there.
  bool move_to(const fs::path& place) {
    fs::permissions(path_, fs::perms(0755));
    if (::rename(path_.c_str(), place.c_str()) == -1) {
      if (errno == ENOTEMPTY || errno == EEXIST) return false;
      cannot_set_up(place, "made");
    }
    path_.clear();
    return true;
  }

 private:
  fs::path path_;
  io::descriptor lock_;
};

}  // namespace

fs::path default_cache() {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  if (const std::string cache = set("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return fs::path(cache) / "kclxx";
  }
  if (const std::string home = set("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "kclxx";
  }
  cannot_set_up(
      "neither XDG_CACHE_HOME, as an absolute path, nor HOME is set: no place for a cache");
}

void fetch_folder(const cached_folder& folder) {
  const fs::path& place = folder.place;
  if (folder.is_complete(place)) {
    remove_leftovers(place, locked_parent(place));
    return;
  }
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) cannot_set_up(place.parent_path().string() + " cannot be made: " + error.message());
  partial_folder partial(place);
  folder.fill(partial.path());
  // Another process may have been quicker; its folder is as good.
  if (!partial.move_to(place) && !folder.is_complete(place)) {
    cannot_set_up(place.string() + " is not complete: remove it and fetch again");
  }
}

}  // namespace kclxx::tool
