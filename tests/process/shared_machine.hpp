// SPDX-License-Identifier: Apache-2.0
// kclxx-share: launchers of test_child on a machine of their own. The daemon is this process.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <signal.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

namespace kclxx::test {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using words = std::vector<std::string>;
using launched = std::unique_ptr<scripted_daemon>;

inline constexpr int daemon_gone = 12;
inline constexpr int resident_gone = 17;
/// How many descriptors a session keeps whose callback does not return.
inline constexpr std::size_t descriptors_of_stuck = 5;
inline const std::string alone = "serves this shard alone";

inline bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto state = text.find_last_of(')') + 2;
  return text.size() > state && text[state] != 'Z';
}

inline std::size_t descriptors_of(pid_t process) {
  return count_of("/proc/" + std::to_string(process) + "/fd");
}
inline std::size_t threads_of(pid_t process) {
  return count_of("/proc/" + std::to_string(process) + "/task");
}

/// The connections that nobody has accepted yet at this socket.
inline std::size_t pending_connections(const fs::path& socket) {
  constexpr auto connecting = "02";
  std::ifstream sockets("/proc/net/unix");
  std::size_t pending = 0;
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream fields(line);
    std::string number, references, protocol, flags, type, state, inode, path;
    fields >> number >> references >> protocol >> flags >> type >> state >> inode >> path;
    if (state == connecting && path == socket) ++pending;
  }
  return pending;
}

/// A machine with a temporary folder of its own, and launchers on it.
class machine {
 public:
  machine() = default;
  ~machine() {
    for (const char* note : {" start", " copy"}) {
      for (const pid_t process : processes_with(note)) {
        if (is_running(process)) ::kill(process, SIGKILL);
      }
    }
  }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }
  /// Where launchers and residents meet.
  [[nodiscard]] fs::path folder() const {
    return path_ / ("kclxx-share-" + std::to_string(::geteuid()));
  }
  [[nodiscard]] std::size_t sockets() const {
    return fs::exists(folder()) ? count_of(folder()) : 0;
  }
  [[nodiscard]] fs::path socket() const { return fs::directory_iterator(folder())->path(); }

  /// Makes a program of the shell.
  [[nodiscard]] std::string program(const std::string& text) const {
    std::ofstream(path_ / "program") << "#!/bin/sh\n" << text;
    fs::permissions(path_ / "program", fs::perms(0700));
    return (path_ / "program").string();
  }

  /// Starts a launcher with this command, for a shard of this stream.
  [[nodiscard]] launched start(const std::string& stream, words command = {child, "manual"},
                               const words& environment = {}) const {
    command.insert(command.begin(), KCLXX_SHARE);
    words variables = environment_of(stream);
    variables.insert(variables.begin(), environment.begin(), environment.end());
    return std::make_unique<scripted_daemon>(
        command, scripted_daemon::start_options{"", std::move(variables)});
  }
  [[nodiscard]] words environment_of(const std::string& stream) const {
    return {"TMPDIR=" + path_.string(),
            "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=", "JOURNAL=" + (path_ / "journal").string(),
            "KCLXX_STREAM_NAME=" + stream};
  }
  [[nodiscard]] launched initialized(const std::string& stream, words command = {child, "manual"},
                                     const words& environment = {}) const {
    launched shard = start(stream, std::move(command), environment);
    test::start(*shard);
    return shard;
  }

  /// The processes in which main began.
  [[nodiscard]] std::vector<pid_t> started() const { return processes_with(" start"); }
  /// The processes that these have started, or forked.
  [[nodiscard]] std::vector<pid_t> copies() const { return processes_with(" copy"); }
  /// The process that serves the shard of this stream.
  [[nodiscard]] pid_t process_of(const std::string& stream) const {
    const auto found = processes_with(" of " + stream);
    REQUIRE(found.size() == 1);
    return found.front();
  }
  [[nodiscard]] std::string journal() const { return read_file(path_ / "journal"); }

 private:
  [[nodiscard]] std::vector<pid_t> processes_with(const std::string& end) const {
    std::vector<pid_t> processes;
    std::istringstream lines(journal());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(end)) processes.push_back(std::stoi(line));
    }
    return processes;
  }

  temporary_folder folder_;
  const fs::path& path_ = folder_.path();
};

/// The threads and descriptors of a process.
class footprint {
 public:
  explicit footprint(pid_t process)
      : process_(process), threads_(threads_of(process)), descriptors_(descriptors_of(process)) {}
  /// Checks that the process soon has as many again. `stuck`: how many callbacks do not return;
  /// each keeps a thread, and descriptors_of_stuck.
  void must_come_back(std::size_t stuck = 0) const {
    const bool came_back = eventually([&] {
      const std::size_t now = descriptors_of(process_);
      return threads_of(process_) == threads_ + stuck && now >= descriptors_ &&
             now <= descriptors_ + stuck * descriptors_of_stuck;
    });
    CAPTURE(stuck, threads_, threads_of(process_), descriptors_, descriptors_of(process_));
    CHECK(came_back);
  }

 private:
  pid_t process_;
  std::size_t threads_;
  std::size_t descriptors_;
};

/// Checks that the shard is served, to its end.
inline void must_be_served(scripted_daemon& shard) {
  shard.process({"a"}, 10);
  CHECK(shard.end() == 0);
}

inline void must_be_served_alone(scripted_daemon& shard, const std::string& reason) {
  start(shard);
  must_be_served(shard);
  const std::string said = shard.stderr_so_far();
  CAPTURE(said);
  CHECK(contains(said, reason));
  CHECK(count(said, "kclxx-share warning: ") == 1);
  CHECK(count(said, alone) == 1);
}

}  // namespace kclxx::test
