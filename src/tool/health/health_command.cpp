// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "io/descriptor.hpp"
#include "tool/commands.hpp"
#include "tool/health/shard_figures.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

using health::garbled_file;
using health::shard_figures;
using seconds = std::chrono::duration<double>;

struct limits {
  std::chrono::milliseconds stuck{600'000};
  std::chrono::milliseconds stale{120'000};
};

seconds now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return seconds(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9);
}

struct metrics_file {
  std::string text;
  seconds age{0};  ///< since it was written
  bool has_writer = false;
};

/// Errors: std::system_error.
metrics_file read(const std::filesystem::path& path) {
  metrics_file found;
  io::descriptor file;
  struct stat about {};
  // Again without the writer's lock (observability/metrics_file.hpp): the file may have been
  // replaced after it was opened.
  for (int tries = 0; tries < 2 && !found.has_writer; ++tries) {
    file = io::descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) throw std::system_error(errno, std::generic_category());
    found.has_writer = ::flock(file.get(), LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK;
  }
  if (::fstat(file.get(), &about) == -1) throw std::system_error(errno, std::generic_category());
  const auto& written = about.st_mtim;
  found.age = now() - seconds(static_cast<double>(written.tv_sec) +
                              static_cast<double>(written.tv_nsec) / 1e9);
  char bytes[16384];
  for (ssize_t size = 1; size > 0; found.text.append(bytes, static_cast<std::size_t>(size))) {
    size = ::read(file.get(), bytes, sizeof bytes);
    if (size == -1) throw std::system_error(errno, std::generic_category());
  }
  return found;
}

std::string text_of(seconds time) {
  return to_text(std::chrono::duration_cast<std::chrono::milliseconds>(time));
}

enum class verdict { alive, ended, failed };

verdict look_at(const std::filesystem::path& path, const limits& limit) {
  const auto failed = [&](const std::string& what) {
    std::cout << printable(path.string() + ": " + what) << '\n';
    return verdict::failed;
  };
  try {
    const metrics_file file = read(path);
    const shard_figures found = health::parse_figures(file.text);
    if (!file.has_writer || found.process == 0) return verdict::ended;
    const std::string process = "process " + std::to_string(found.process);
    if (file.age > limit.stale) {
      return failed(found.shard + " is stale: " + process + " has written nothing for " +
                    text_of(file.age));
    }
    // When it was written: what has happened since then is not known.
    const seconds running = now() - file.age - found.oldest_call;
    if (found.oldest_call.count() == 0 || running <= limit.stuck) return verdict::alive;
    return failed(found.shard + " is stuck: a handler or callback of " + process + " runs for " +
                  text_of(running));
  } catch (const garbled_file& error) {
    return failed(std::string("it is garbled: ") + error.what());
  } catch (const std::system_error& error) {
    // It was removed meanwhile, with its lease.
    if (error.code() == std::errc::no_such_file_or_directory) return verdict::ended;
    return failed("it cannot be read: " + error.code().message());
  }
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("kclxx.") && name.ends_with(".prom")) files.push_back(at->path());
  }
  if (error) {
    cannot_set_up(directory.string() + " cannot be read: " + error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

exit_status run_health(const std::string& directory, const limits& limit) {
  const auto files = files_in(directory);
  std::size_t alive = 0;
  std::size_t ended = 0;
  for (const auto& path : files) {
    const verdict one = look_at(path, limit);
    if (one == verdict::alive) ++alive;
    if (one == verdict::ended) ++ended;
  }
  if (alive + ended < files.size()) return exit_status::breach;
  std::cout << directory << ": " << alive << (alive == 1 ? " shard gets" : " shards get") << " on";
  if (ended > 0) std::cout << "; " << ended << " left by processes that have ended";
  if (files.empty()) std::cout << ": it has no files of kclxx (KCLXX_METRICS_DIR)";
  std::cout << std::endl;
  return exit_status::ok;
}

}  // namespace

void add_health_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"health",
       "Tells from the metrics' files in DIR (KCLXX_METRICS_DIR) whether the shards of a worker\n"
       "get on, for a probe on the worker's machine or in its container. Exit status 0: yes, 1: a\n"
       "handler is stuck, a process no longer writes, or a file cannot be used; a line names "
       "each.\n"
       "How far a shard is behind does not count, and neither does a worker without shards.",
       "kclxx health /run/kclxx --stuck-after 900"},
      child_use::none, run);
  auto directory = std::make_shared<std::string>();
  auto limit = std::make_shared<limits>();
  command.add_option("DIR", *directory, "The directory of the metrics")->required();
  add_seconds(command, "--stuck-after", limit->stuck,
              "How long a handler, or a callback without one, may run");
  add_seconds(command, "--stale-after", limit->stale,
              "How old the file of a process that lives may be; it is written every 15 s");
  command.callback(
      [directory, limit, &run] { run.status = static_cast<int>(run_health(*directory, *limit)); });
}

}  // namespace kclxx::tool
