// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace {

namespace fs = std::filesystem;

/// Calls a function of POSIX until no signal interrupts it.
template <class Call>
auto checked(Call call, const char* step, const fs::path& path) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno == EINTR) continue;
    throw std::system_error(errno, std::generic_category(), step + (" " + path.string()));
  }
}

class descriptor {
 public:
  descriptor(const fs::path& path, int flags)
      : fd_(checked([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }, "cannot open",
                    path)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { ::close(fd_); }
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)

 private:
  int fd_;
};

/// The names in a folder are on the disk only after this.
void sync_folder(const fs::path& folder) {
  const descriptor fd(folder, O_RDONLY | O_DIRECTORY);
  checked([&] { return ::fsync(fd); }, "cannot sync", folder);
}

void make_folder(const fs::path& folder) {
  if (fs::is_directory(folder)) return;
  make_folder(folder.parent_path());
  fs::create_directory(folder);
  sync_folder(folder.parent_path());
}

void write_new(const fs::path& file, std::string_view content) {
  make_folder(file.parent_path());
  const descriptor fd(file, O_WRONLY | O_CREAT | O_EXCL);
  for (std::size_t written = 0; written < content.size();) {
    written += static_cast<std::size_t>(
        checked([&] { return ::write(fd, content.data() + written, content.size() - written); },
                "cannot write", file));
  }
  checked([&] { return ::fsync(fd); }, "cannot sync", file);
}

}  // namespace

folder_store::folder_store(fs::path folder) : folder_(std::move(folder)) {}

void folder_store::put(const std::string& name, std::string_view content) {
  const fs::path file = folder_ / name;
  write_new(file, content);
  sync_folder(file.parent_path());
}

bool folder_store::put_if_absent(const std::string& name, std::string_view content) {
  const fs::path file = folder_ / name;
  static std::atomic<int> number = 0;
  const fs::path part =
      file.string() + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  fs::remove(part);  // of a process that had the same number
  write_new(part, content);
  // A link, unlike a rename, replaces nothing: it is made by one of those who try.
  const bool is_made = ::link(part.c_str(), file.c_str()) == 0;
  const int error = errno;
  fs::remove(part);
  if (!is_made && error != EEXIST) {
    throw std::system_error(error, std::generic_category(), "cannot link " + file.string());
  }
  sync_folder(file.parent_path());  // also when another one has made it, perhaps not yet durably
  return is_made;
}

std::optional<std::string> folder_store::get(const std::string& name) const {
  const fs::path file = folder_ / name;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    if (!fs::exists(file)) return std::nullopt;
    throw std::system_error(errno, std::generic_category(), "cannot open " + file.string());
  }
  sync_folder(file.parent_path());
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (in.bad())
    throw std::system_error(EIO, std::generic_category(), "cannot read " + file.string());
  return content;
}

void folder_store::move(const std::string& name, const std::string& final_name) {
  const fs::path from = folder_ / name;
  const fs::path to = folder_ / final_name;
  make_folder(to.parent_path());
  if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
    throw std::system_error(errno, std::generic_category(), "cannot rename " + from.string());
  }
  sync_folder(to.parent_path());
}

std::vector<std::string> folder_store::list(const std::string& folder) const {
  std::vector<std::string> names;
  if (!fs::is_directory(folder_ / folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder_ / folder)) {
    names.push_back(folder + "/" + entry.path().filename().string());
  }
  return names;
}

void folder_store::remove(const std::string& name) { fs::remove(folder_ / name); }
