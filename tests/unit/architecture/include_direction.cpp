// SPDX-License-Identifier: Apache-2.0
#include "unit/architecture/include_direction.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

namespace kclxx::test {

namespace {

using names = std::vector<std::string_view>;

/// What a folder may include besides the C++ standard library and itself.
struct layer {
  std::string_view folder;  // with its slash; or the beginning of some files
  names own_headers;        // beginnings of "..." includes
  names other_headers;      // beginnings of <...> includes
  names forbidden;          // of the standard library
};

// What waits, is shared by threads, or reaches out of the process, has no place in a pure layer.
const names effects{"thread",    "mutex",  "shared_mutex", "condition_variable", "future",
                    "semaphore", "latch",  "barrier",      "iostream",           "fstream",
                    "csignal",   "cstdio", "filesystem"};
const names posix{"arpa/",    "fcntl.h", "netinet/", "poll.h",   "pthread.h", "sched.h",
                  "signal.h", "spawn.h", "sys/",     "unistd.h", "malloc.h"};

const names asio{"kclxx/", "boost/asio/", "boost/system/", "boost/version.hpp"};

template <class... Name>
names effects_except(Name... allowed) {
  names rest = effects;
  for (const std::string_view name : {std::string_view(allowed)...}) {
    rest.erase(std::find(rest.begin(), rest.end(), name));
  }
  return rest;
}

names with_posix(names more) {
  more.insert(more.end(), posix.begin(), posix.end());
  return more;
}

const std::vector<layer>& layers() {
  static const std::vector<layer> all{
      // Opt-in headers show the library that they are for.
      {"include/kclxx/prometheus.hpp", {}, {"kclxx/", "prometheus/"}, {}},
      {"include/kclxx/detail/json_handler", {}, {"kclxx/", "nlohmann/"}, {}},
      // Who includes it uses Boost.Asio.
      {"include/kclxx/asio.hpp", {}, asio, {}},
      {"include/kclxx/asio_timer.hpp", {}, asio, {}},
      {"include/kclxx/detail/asio_", {}, asio, {}},
      {"include/kclxx/", {}, {"kclxx/"}, {}},
      {"src/prometheus/", {}, {"kclxx/", "prometheus/"}, {}},
      {"src/kclxx/base/", {"base/"}, {"kclxx/"}, {}},
      {"src/kclxx/protocol/", {"base/eight_characters", "protocol/"}, {"kclxx/"}, effects},
      {"src/kclxx/session/",
       {"base/backoff", "base/invariant", "base/log_text", "base/names", "base/overloaded",
        "protocol/", "session/"},
       {"kclxx/"},
       effects},
      {"src/kclxx/io/", {"io/"}, with_posix({"kclxx/", "boost/"}), {}},
      // Its memory is given back on whichever thread drops the last handle on a batch.
      {"src/kclxx/driver/batch_memory",
       {"driver/batch_memory", "io/line_"},
       with_posix({"kclxx/"}),
       effects_except("mutex")},
      {"src/kclxx/driver/",
       {"base/duration", "base/log_text", "base/names", "base/overloaded", "base/thrown", "driver/",
        "io/line_", "protocol/", "session/"},
       {"kclxx/"},
       effects},
      // What is written where, and when; the rest only decides what.
      {"src/kclxx/observability/log_writer",
       {"base/environment", "io/line_writer", "observability/"},
       with_posix({"kclxx/"}),
       {}},
      {"src/kclxx/observability/metrics_file",
       {"io/descriptor", "io/line_writer", "observability/metrics_file"},
       with_posix({"kclxx/"}),
       {}},
      {"src/kclxx/observability/metrics_outputs",
       {"base/duration", "base/unlocked", "io/", "observability/"},
       with_posix({"kclxx/"}),
       {}},
      {"src/kclxx/observability/observ",
       {"base/environment", "io/task_thread", "observability/", "protocol/utf8"},
       {"kclxx/"},
       {}},
      {"src/kclxx/observability/metrics_recorder",
       {"base/names", "base/overloaded"},
       {"kclxx/", "unistd.h"},
       effects},
      {"src/kclxx/observability/",
       {"base/names", "base/overloaded", "observability/", "protocol/json_string"},
       {"kclxx/"},
       effects_except("cstdio")},
      {"src/kclxx/sharing/launcher/",
       {"base/fnv", "io/descriptor", "io/outlive_signals", "io/process_identity", "io/program_path",
        "sharing/folder_lock", "sharing/launcher/", "sharing/messages"},
       with_posix({"kclxx/exit_status.hpp", "kclxx/version.hpp", "dirent.h"}),
       effects_except("csignal", "cstdio")},
      {"src/kclxx/sharing/",
       {"base/overloaded", "io/", "sharing/"},
       with_posix({"kclxx/", "boost/asio/"}),
       {}},
      {"src/kclxx/runtime/",
       {"base/", "driver/", "io/", "observability/", "protocol/", "runtime/", "session/",
        "sharing/"},
       with_posix({"kclxx/"}),
       {}},
      // A parked record must be on disk before it counts as complete.
      {"src/kclxx/processing/parking_file",
       {"io/descriptor", "processing/", "protocol/base64_encoder", "protocol/json_string"},
       with_posix({"kclxx/"}),
       {}},
      {"src/kclxx/processing/",
       {"base/backoff", "base/duration", "base/environment", "base/fnv", "base/invariant",
        "base/thrown", "io/forked_copy", "processing/"},
       {"kclxx/"},
       effects_except("mutex")},
      {"src/daemon_model/", {"base/overloaded", "daemon_model/", "protocol/"}, {"kclxx/"}, effects},
      // It asks which thread it is on, and starts one for a stop token in a callback.
      {"src/testing/",
       {"base/duration", "base/names", "daemon_model/", "driver/", "protocol/", "session/",
        "testing/"},
       {"cxxabi.h", "kclxx/"},
       effects_except("thread", "future")},
      // The tool's commands do I/O; what they decide is pure, and the first entry that fits counts.
      {"src/tool/check/rule",
       {"base/fnv", "daemon_model/", "protocol/", "tool/check/", "tool/text"},
       {"kclxx/"},
       effects},
      {"src/tool/check/lockstep_daemon",
       {"daemon_model/", "protocol/", "tool/check/", "tool/text"},
       {"kclxx/"},
       effects},
      {"src/tool/daemon/key_rules", {"tool/daemon/"}, {"kclxx/"}, effects},
      {"src/tool/daemon/properties", {"tool/daemon/"}, {"kclxx/"}, effects},
      {"src/tool/lease_table/", {"tool/lease_table/", "tool/text"}, {}, effects},
      {"src/tool/replay/parked_records",
       {"daemon_model/lines", "protocol/", "tool/replay/"},
       {"kclxx/"},
       effects},
      {"src/tool/replay/verdict", {"tool/replay/", "tool/transcript/"}, {"kclxx/"}, effects},
      {"src/tool/replay/player",
       {"base/overloaded", "daemon_model/", "protocol/", "tool/process/dialogue", "tool/replay/",
        "tool/text", "tool/transcript/"},
       {"kclxx/"},
       effects},
      {"src/tool/replay/script",
       {"daemon_model/lines", "protocol/", "tool/replay/", "tool/transcript/"},
       {"kclxx/"},
       effects},
      {"src/tool/replay/measurement", {"tool/replay/"}, {"kclxx/"}, effects},
      {"src/tool/transcript/reader",
       {"protocol/", "tool/line_splitter", "tool/transcript/"},
       {"kclxx/"},
       effects},
      {"src/tool/transcript/writer", {"protocol/", "tool/transcript/"}, {"kclxx/"}, effects},
      {"src/tool/process/",
       {"io/", "tool/command", "tool/line_splitter", "tool/process/"},
       with_posix({"kclxx/", "boost/asio/"}),
       {}},
      {"src/tool/transcript/",
       {"io/descriptor", "protocol/", "tool/line_splitter", "tool/process/cancel",
        "tool/transcript/"},
       with_posix({"kclxx/", "boost/asio/"}),
       {}},
      {"src/tool/",
       {"base/", "daemon_model/", "io/", "protocol/", "tool/"},
       with_posix({"kclxx/", "CLI/", "boost/algorithm/string/", "boost/asio/", "boost/locale/utf"}),
       {}},
  };
  return all;
}

// simdjson reads the wire and nlohmann_json is for what people read, each in its one place.
bool is_json_in_its_place(std::string_view path, std::string_view header) {
  if (header == "simdjson.h") {
    return path.starts_with("src/kclxx/protocol/decoder") || path == "src/kclxx/protocol/utf8.cpp";
  }
  return header.starts_with("nlohmann/") &&
         (path.starts_with("src/daemon_model/child_message") ||
          path.starts_with("src/tool/lease_table/") || path.starts_with("src/tool/transcript/") ||
          path.starts_with("src/tool/replay/parked_records") ||
          path.starts_with("src/tool/replay/replay_json"));
}

// What only one kind of processor has is in a file of its own, beside a version for all.
bool is_vector_code(std::string_view path, std::string_view header) {
  return (header == "immintrin.h" && path == "src/kclxx/protocol/base64_x86.cpp") ||
         (header == "arm_neon.h" && path == "src/kclxx/protocol/base64_neon.cpp");
}

bool begins_with_any(std::string_view text, const names& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// The folder right below tool/, with a slash; empty for what lies in tool/ itself.
std::string_view tool_folder(std::string_view path) {
  const std::string_view rest = path.substr(std::string_view("tool/").size());
  const std::size_t slash = rest.find('/');
  return slash == std::string_view::npos ? "" : rest.substr(0, slash + 1);
}

// main lists the commands. What several of them use lies in src/tool/ itself, or in a folder that
// is no command.
bool is_of_another_command(std::string_view path, std::string_view header) {
  if (!path.starts_with("src/tool/") || path == "src/tool/main.cpp") return false;
  if (!header.starts_with("tool/")) return false;
  const std::string_view folder = tool_folder(header);
  return !folder.empty() && folder != "lease_table/" && folder != "process/" &&
         folder != "transcript/" &&
         folder != tool_folder(path.substr(std::string_view("src/").size()));
}

// The standard library's headers are words without a slash or a dot.
bool is_standard(std::string_view header) {
  return header.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") ==
         std::string_view::npos;
}

std::string why_not(const layer& in, std::string_view path, bool is_quoted,
                    std::string_view header) {
  if (is_quoted) {
    if (header.find("..") != std::string_view::npos) return "goes up by a relative path";
    if (is_of_another_command(path, header)) return "is of another command";
    return begins_with_any(header, in.own_headers) ? "" : "is a layer that this one must not know";
  }
  if (is_standard(header)) {
    const bool is_forbidden =
        std::find(in.forbidden.begin(), in.forbidden.end(), header) != in.forbidden.end();
    return is_forbidden ? "is an effect, and this layer is pure" : "";
  }
  if (begins_with_any(header, in.other_headers) || is_json_in_its_place(path, header) ||
      is_vector_code(path, header)) {
    return "";
  }
  return "is not for this layer";
}

/// The header of an #include line with its quote or bracket in front; nothing for other lines.
std::optional<std::string> included(std::string_view line) {
  const auto skip_space = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_space();
  if (!line.starts_with('#')) return std::nullopt;
  line.remove_prefix(1);
  skip_space();
  if (!line.starts_with("include")) return std::nullopt;
  line.remove_prefix(7);
  skip_space();
  const std::size_t end = line.find_first_of(line.starts_with('<') ? ">" : "\"", 1);
  // An include by macro hides what it includes.
  if (line.empty() || end == std::string_view::npos) return "?" + std::string(line);
  return std::string(line.substr(0, end));
}

}  // namespace

std::vector<std::string_view> layer_paths() {
  std::vector<std::string_view> result;
  for (const layer& one : layers()) result.push_back(one.folder);
  return result;
}

std::vector<std::string> include_violations(std::string_view path, std::string_view text) {
  const auto& all = layers();
  const auto in = std::find_if(all.begin(), all.end(),
                               [&](const layer& layer) { return path.starts_with(layer.folder); });
  if (in == all.end()) return {std::string(path) + ": its folder has no rule"};
  std::vector<std::string> result;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const auto header = included(line);
    if (!header) continue;
    const std::string reason = header->front() == '?'
                                   ? "is not a plain include"
                                   : why_not(*in, path, header->front() == '"', header->substr(1));
    if (!reason.empty())
      result.push_back(std::string(path) + ": " + header->substr(1) + ": " + reason);
  }
  return result;
}

}  // namespace kclxx::test
