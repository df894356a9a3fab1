// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "host/commands.hpp"
#include "io/descriptor.hpp"
#include "tool/files.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

using seconds = std::chrono::duration<double>;

/// What a shard's text file says about its session.
struct shard_figures {
  std::string shard;
  std::uint64_t process = 0;
  /// When the oldest call that still runs began, since 1970; 0: none does.
  seconds oldest_call{0};
  bool is_in_outage = false;  ///< its circuit is open
};

constexpr std::string_view oldest_call = "kclxx_oldest_call_timestamp_seconds";
constexpr std::string_view process_id = "kclxx_process_id";
constexpr std::string_view circuit_open = "kclxx_circuit_open";

/// The line of a family that has one sample: what follows its name.
std::string_view sample_of(std::string_view text, std::string_view family) {
  const std::string begin = "\n" + std::string(family) + "{";
  const auto at = text.find(begin);
  if (at == std::string_view::npos) throw std::runtime_error("it has no " + std::string(family));
  text.remove_prefix(at + begin.size());
  const auto end = text.find('\n');
  if (end == std::string_view::npos) throw std::runtime_error("it ends within a line");
  return text.substr(0, end);
}

bool has_family(std::string_view text, std::string_view family) {
  return text.find("\n" + std::string(family) + "{") != std::string_view::npos;
}

double value_of(std::string_view text, std::string_view family) {
  const std::string_view sample = sample_of(text, family);
  const std::string_view digits = sample.substr(sample.rfind(' ') + 1);
  double value = -1;
  if (!read_number(digits, value) || !std::isfinite(value) || value < 0) {
    throw std::runtime_error(std::string(family) + " is not a number");
  }
  return value;
}

/// The shard in a sample's labels, without escapes.
std::string shard_of(std::string_view sample) {
  constexpr std::string_view label = "shard=\"";
  const auto at = sample.find(label);
  std::string shard;
  for (auto i = at + label.size(); at != std::string_view::npos && i < sample.size(); ++i) {
    if (sample[i] == '"') return shard;
    if (sample[i] == '\\') ++i;
    if (i < sample.size()) shard += sample[i];
  }
  throw std::runtime_error(std::string(process_id) + " has no shard");
}

/// The figures in a file's text. Errors: std::runtime_error when it is no text of kclxx.
shard_figures parse_figures(std::string_view text) {
  return {shard_of(sample_of(text, process_id)),
          static_cast<std::uint64_t>(value_of(text, process_id)),
          seconds(value_of(text, oldest_call)),
          has_family(text, circuit_open) && value_of(text, circuit_open) > 0};
}

struct limits {
  std::chrono::milliseconds stuck{600'000};
  std::chrono::milliseconds stale{120'000};
};

seconds now() { return std::chrono::system_clock::now().time_since_epoch(); }

struct found_file {
  std::string text;
  seconds age{0};  ///< since it was written
  /// Whether the process that wrote it lives; nothing: the file system has no such locks.
  std::optional<bool> has_writer;
};

// The figures of one shard, with the user's own families, are some 100 KB at most.
constexpr std::size_t most_bytes = std::size_t{16} << 20;

std::optional<bool> has_writer(const io::descriptor& file) {
  struct flock lock {};
  lock.l_type = F_RDLCK;  // a reader's lock does not stand in its way
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) == -1) return std::nullopt;
  return lock.l_type == F_WRLCK;
}

/// Errors: std::system_error, std::runtime_error.
found_file read(const std::filesystem::path& path) {
  found_file found;
  io::descriptor file;
  struct stat about {};
  // Others may be able to write into the folder, so a link or a pipe is not read. A file without
  // the writer's lock (observability/metrics_outputs.hpp) is opened again: it may have been
  // replaced after it was opened.
  for (int tries = 0; tries < 2 && !found.has_writer.value_or(false); ++tries) {
    file = io::descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!file.is_open()) throw std::system_error(errno, std::generic_category());
    found.has_writer = has_writer(file);
  }
  if (::fstat(file.get(), &about) == -1) throw std::system_error(errno, std::generic_category());
  if (!S_ISREG(about.st_mode)) throw std::runtime_error("it is no regular file");
  const auto& written = about.st_mtim;
  found.age = now() - seconds(static_cast<double>(written.tv_sec) +
                              static_cast<double>(written.tv_nsec) / 1e9);
  char bytes[16384];
  for (ssize_t size = 1; size > 0; found.text.append(bytes, static_cast<std::size_t>(size))) {
    size = ::read(file.get(), bytes, sizeof bytes);
    if (size == -1) throw std::system_error(errno, std::generic_category());
    if (found.text.size() > most_bytes) throw std::runtime_error("it is too long");
  }
  return found;
}

std::string text_of(seconds time) {
  return to_text(std::chrono::duration_cast<std::chrono::milliseconds>(time));
}

enum class shard_health { alive, in_outage, ended, failed };

shard_health look_at(const std::filesystem::path& path, const limits& limit) {
  const auto failed = [&](const std::string& message) {
    std::cout << printable(path.string() + ": " + message) << '\n';
    return shard_health::failed;
  };
  try {
    const found_file file = read(path);
    const shard_figures found = parse_figures(file.text);
    if (file.has_writer == false || found.process == 0) return shard_health::ended;
    const std::string process = "process " + std::to_string(found.process);
    if (file.age > limit.stale) {
      return failed(
          found.shard + " is stale: " + process + " has written nothing for " + text_of(file.age) +
          (file.has_writer ? ""
                           : "; whether it has ended is not known, since this file system "
                             "cannot lock files: if it has, remove the file"));
    }
    // How long the call ran when the file was written: what has happened since is not known.
    const seconds running = now() - file.age - found.oldest_call;
    if (found.oldest_call.count() == 0 || running <= limit.stuck) {
      return found.is_in_outage ? shard_health::in_outage : shard_health::alive;
    }
    return failed(found.shard + " is stuck: a handler or callback of " + process + " runs for " +
                  text_of(running));
  } catch (const std::system_error& error) {
    // It was removed meanwhile, with its lease.
    if (error.code() == std::errc::no_such_file_or_directory) return shard_health::ended;
    return failed("it cannot be read: " + error.code().message());
  } catch (const std::runtime_error& error) {
    return failed(std::string("it is garbled: ") + error.what());
  }
}

command_status run_health(const std::string& directory, const limits& limit, bool allow_empty) {
  std::set<std::string> files = names_in(directory);
  std::erase_if(files, [](const std::string& name) {
    return !name.starts_with("kclxx.") || !name.ends_with(".prom");
  });
  if (files.empty()) {
    std::cout << directory
              << " has no files of kclxx (KCLXX_METRICS_DIR): children that do not use kclxx and "
                 "workers without shards "
                 "write none; --allow-empty takes that for healthy"
              << std::endl;
    return allow_empty ? command_status::ok : command_status::finding;
  }
  std::map<shard_health, std::size_t> shards;
  for (const std::string& name : files) {
    ++shards[look_at(std::filesystem::path(directory) / name, limit)];
  }
  if (shards[shard_health::failed] > 0) return command_status::finding;
  const std::size_t alive = shards[shard_health::alive] + shards[shard_health::in_outage];
  std::cout << directory << ": no handler is stuck in " << alive
            << (alive == 1 ? " shard" : " shards");
  if (const auto count = shards[shard_health::in_outage]; count > 0) {
    std::cout << "; " << count << " of them in an outage (the circuit is open)";
  }
  if (const auto count = shards[shard_health::ended]; count > 0) {
    std::cout << "; " << count << " left by processes that have ended";
  }
  std::cout << std::endl;
  return command_status::ok;
}

}  // namespace

void add_health_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"health",
       "Tells from the metrics' files in DIR (KCLXX_METRICS_DIR) whether the shards of a worker\n"
       "get on, for a probe on the worker's machine or in its container. Exit status 0: yes, 1: a\n"
       "handler is stuck, a process no longer writes, a file cannot be used, or there is no file;\n"
       "a line names each. How far a shard is behind does not count, and neither does an outage.",
       "kclxx health /run/kclxx --stuck-after 900"},
      child_use::none, run);
  auto directory = std::make_shared<std::string>();
  auto limit = std::make_shared<limits>();
  command.add_option("DIR", *directory, "The directory of the metrics")->required();
  add_seconds(command, "--stuck-after", limit->stuck,
              "How long a handler, initialize or process_records may run");
  add_seconds(command, "--stale-after", limit->stale,
              "How old the file of a process that lives may be; it is written every 15 s");
  auto allow_empty = std::make_shared<bool>(false);
  command.add_flag("--allow-empty", *allow_empty,
                   "No file is no finding: for a worker that may have no shard");
  command.callback(
      [=, &run] { run.status = static_cast<int>(run_health(*directory, *limit, *allow_empty)); });
}

}  // namespace kclxx::host
