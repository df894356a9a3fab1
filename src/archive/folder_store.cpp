// SPDX-License-Identifier: Apache-2.0
#include "archive/folder_store.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <kclxx/archive/commit_log.hpp>

#include "io/descriptor.hpp"

namespace kclxx::archive {

namespace {

[[noreturn]] void raise(const char* action, const std::string& name) {
  throw std::system_error(errno, std::generic_category(), action + (" " + name));
}

/// Calls a function of POSIX until no signal interrupts it.
template <class Call>
auto call(Call function, const char* action, const std::string& name) {
  const auto result = io::uninterrupted(function);
  if (result == -1) raise(action, name);
  return result;
}

io::descriptor open_in(int folder, const std::string& name, int flags) {
  return io::descriptor(
      call([&] { return ::openat(folder, name.c_str(), flags | O_CLOEXEC, 0644); }, "cannot open",
           name));
}

std::string folder_of_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "." : name.substr(0, slash);
}

/// Makes the names in a folder durable. Some file systems need no such call, and have none.
void sync_folder(int root, const std::string& folder) {
  const io::descriptor opened = open_in(root, folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(opened.get()) != 0 && !io::is_unsupported(errno)) raise("cannot sync", folder);
}

void make_folder(int root, const std::string& folder) {
  struct stat about {};
  if (::fstatat(root, folder.c_str(), &about, 0) == 0) return;
  if (errno != ENOENT) raise("cannot read", folder);
  const std::string parent = folder_of_name(folder);
  make_folder(root, parent);
  if (::mkdirat(root, folder.c_str(), 0755) != 0 && errno != EEXIST) raise("cannot make", folder);
  sync_folder(root, parent);
}

/// Makes a file that is durable once its folder is. When this fails nothing is left of it.
void write_new(int root, const object& written) {
  const io::descriptor file = open_in(root, written.name, O_WRONLY | O_CREAT | O_EXCL);
  try {
    for (std::string_view unwritten = written.content; !unwritten.empty();) {
      const auto count =
          call([&] { return ::write(file.get(), unwritten.data(), unwritten.size()); },
               "cannot write", written.name);
      unwritten.remove_prefix(static_cast<std::size_t>(count));
    }
    call([&] { return ::fsync(file.get()); }, "cannot sync", written.name);
  } catch (...) {
    ::unlinkat(root, written.name.c_str(), 0);
    throw;
  }
}

class folder_store final : public store {
 public:
  /// Makes and removes a link in the folder.
  explicit folder_store(const std::filesystem::path& folder);

  void put(std::span<const object> objects) override {
    const int folder = root();
    for (const object& written : objects) {
      make_folder(folder, folder_of_name(written.name));
      write_new(folder, written);
    }
  }
  bool put_if_absent(const object& candidate) override {
    const int folder = root();
    const std::string parent = folder_of_name(candidate.name);
    const object part{candidate.name + '.' + random_name() + ".part", candidate.content};
    make_folder(folder, parent);
    write_new(folder, part);
    bool is_made = false;
    try {
      // The objects that were put into this folder have to be durable before the new name is.
      sync_folder(folder, parent);
      // A link, unlike a rename, replaces nothing: of several workers that try, one makes it.
      is_made = ::linkat(folder, part.name.c_str(), folder, candidate.name.c_str(), 0) == 0;
      if (!is_made && errno != EEXIST) raise("cannot link", candidate.name);
    } catch (...) {
      ::unlinkat(folder, part.name.c_str(), 0);
      throw;
    }
    ::unlinkat(folder, part.name.c_str(), 0);
    try {
      // Also when another worker has made the object: it may not have come to its sync yet.
      sync_folder(folder, parent);
    } catch (const std::system_error& error) {
      throw outcome_unknown(error.code(), error.what());
    }
    return is_made;
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
    const int folder = root();
    try {
      const io::descriptor file = open_in(folder, name, O_RDONLY);
      std::string content;
      char buffer[65536];
      for (;;) {
        const auto count =
            call([&] { return ::read(file.get(), buffer, sizeof buffer); }, "cannot read", name);
        if (count == 0) break;
        content.append(buffer, static_cast<std::size_t>(count));
      }
      sync_folder(folder, folder_of_name(name));  // its maker may have crashed before its own sync
      return content;
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::no_such_file_or_directory) return std::nullopt;
      throw;
    }
  }
  void move(std::span<const renaming> renamings) override {
    const int folder = root();
    std::set<std::string> changed_folders;
    for (const auto& [from, to] : renamings) {
      const std::string parent = folder_of_name(to);
      make_folder(folder, parent);
      struct stat about {};
      if (::renameat(folder, from.c_str(), folder, to.c_str()) != 0 &&
          (errno != ENOENT || ::fstatat(folder, to.c_str(), &about, 0) != 0)) {
        raise("cannot move", from + " to " + to);
      }
      changed_folders.insert(parent);
    }
    for (const std::string& parent : changed_folders) sync_folder(folder, parent);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override {
    const int in = ::openat(root(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0 && errno == ENOENT) return {};
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(in < 0 ? nullptr : ::fdopendir(in),
                                                      ::closedir);
    if (!entries) raise("cannot open", folder);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string name = folder + '/' + entry->d_name;
      struct stat about {};
      if (std::string_view(entry->d_name).starts_with('.')) continue;
      if (::fstatat(root_.get(), name.c_str(), &about, 0) == 0 && S_ISDIR(about.st_mode)) {
        for (std::string& inner : list(name)) names.push_back(std::move(inner));
      } else {
        names.push_back(name);
      }
      errno = 0;
    }
    if (errno != 0) raise("cannot read", folder);
    return names;
  }
  void remove(std::span<const std::string> names) override {
    const int folder = root();
    for (const std::string& name : names) {
      if (::unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) raise("cannot remove", name);
    }
  }

 private:
  /// The folder's descriptor. Errors: std::system_error when the path leads elsewhere. The volume
  /// may then be unmounted, and what is written through the descriptor may never be seen again.
  [[nodiscard]] int root() const;

  std::filesystem::path path_;
  io::descriptor root_;
};

folder_store::folder_store(const std::filesystem::path& folder)
    : path_(std::filesystem::absolute(folder)),
      root_(open_in(AT_FDCWD, path_.string(), O_RDONLY | O_DIRECTORY)) {
  // The names are always the same, so a process that is killed here leaves nothing that adds up.
  constexpr const char* probe = "_kclxx.probe";
  constexpr const char* second_name = "_kclxx.probe.link";
  const int root = root_.get();
  io::descriptor(::openat(root, probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)).close();
  const int error = ::linkat(root, probe, root, second_name, 0) == 0 ? 0 : errno;
  ::unlinkat(root, second_name, 0);
  ::unlinkat(root, probe, 0);
  // An error that may pass, such as a full disk, is left to the failure policy.
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS) {
    throw std::system_error(error, std::generic_category(),
                            path_.string() + " cannot be an archive, it has no hard links");
  }
}

int folder_store::root() const {
  struct stat opened {};
  struct stat named {};
  if (::stat(path_.c_str(), &named) != 0) raise("the archive is gone:", path_.string());
  if (::fstat(root_.get(), &opened) != 0) raise("cannot read", path_.string());
  if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino) {
    errno = ENODEV;
    raise("the archive is gone, its path leads to another folder:", path_.string());
  }
  return root_.get();
}

}  // namespace

std::shared_ptr<store> open_folder(const std::filesystem::path& folder) {
  return std::make_shared<folder_store>(folder);
}

}  // namespace kclxx::archive
