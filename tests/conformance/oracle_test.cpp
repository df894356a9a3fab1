// SPDX-License-Identifier: Apache-2.0
// Holds the daemon model against the daemon's real classes.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case_file.hpp"
#include "conformance/model_player.hpp"
#include "conformance/random_script.hpp"
#include "conformance/real_player.hpp"

namespace {

using kclxx::daemon_model::daemon_version;
using namespace kclxx::oracle;

constexpr std::string_view usage =
    R"(usage: oracle_test --generation 1|2|3 [--cases DIR] [--random N] [--seed S] [--show]
                   [--child PROGRAM] -- JAVA...

Plays scripts on src/daemon_model and on the daemon's real classes (JAVA... is the command that
starts java/common/Oracle.java with them), and compares what happens, event by event.

  --generation  the major version of the KCL that JAVA runs
  --cases DIR   plays the cases of each .json file there
  --random N    plays N random scripts, with the seeds S, S + 1, ...
  --seed S      the first seed (1)
  --child PROGRAM  plays the cases with a child process, too: PROGRAM is oracle_child
  --show        prints every script with the real classes' events

Exit status: 0 all agree, 1 some differ (each is printed), 2 it could not be done.
)";

struct options {
  daemon_version version{};
  std::filesystem::path cases{};
  std::uint64_t random = 0;
  std::uint64_t seed = 1;
  bool show = false;
  std::string child{};
  std::vector<std::string> java{};
};

std::uint64_t number(const std::string& text) {
  std::uint64_t result = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, result);
  if (error != std::errc() || last != end) throw std::runtime_error("'" + text + "' is no number");
  return result;
}

options parse(const std::vector<std::string>& arguments) {
  options result;
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--show") {
      result.show = true;
      continue;
    }
    if (name == "--") {
      result.java.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (++i == arguments.size()) throw std::runtime_error(name + " wants a value");
    const std::string& value = arguments[i];
    if (name == "--generation") {
      version = number(value);
    } else if (name == "--cases") {
      result.cases = value;
    } else if (name == "--child") {
      result.child = value;
    } else if (name == "--random") {
      result.random = number(value);
    } else if (name == "--seed") {
      result.seed = number(value);
    } else {
      throw std::runtime_error("no option " + name);
    }
  }
  if (version < 1 || version > 3) throw std::runtime_error("--generation wants 1, 2 or 3");
  if (result.java.empty()) throw std::runtime_error("no command of the real classes after --");
  result.version = version == 1 ? daemon_version::v1 : daemon_version::v3;
  return result;
}

std::vector<script> scripts_for(const options& chosen) {
  std::vector<script> result;
  if (!chosen.cases.empty()) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(chosen.cases)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      for (script& script : read_cases(file, chosen.version)) result.push_back(std::move(script));
    }
  }
  for (std::uint64_t i = 0; i < chosen.random; ++i) {
    result.push_back(random_script(chosen.seed + i, chosen.version));
    result.back().name = "--random 1 --seed " + std::to_string(chosen.seed + i);
  }
  if (result.empty()) throw std::runtime_error("nothing to play: give --cases or --random");
  return result;
}

void print_events(const nlohmann::json& events) {
  for (const auto& event : events) std::cout << "    " << event.dump() << '\n';
}

/// What happened, by whose account.
struct account {
  std::string_view whose;
  const nlohmann::json& events;
};

bool agree(const script& played, const account& first, const account& second) {
  if (first.events == second.events) return true;
  const auto end = first.events.end();
  const auto second_end = second.events.end();
  const auto [at, second_at] =
      std::mismatch(first.events.begin(), end, second.events.begin(), second_end);
  std::cout << "they differ in: " << played.name << "\n  script: " << to_json(played).dump()
            << "\n  both:\n";
  print_events(nlohmann::json(std::vector<nlohmann::json>(first.events.begin(), at)));
  std::cout << "  " << first.whose << ": " << (at == end ? "nothing" : at->dump()) << "\n  "
            << second.whose << ": " << (second_at == second_end ? "nothing" : second_at->dump())
            << "\n\n";
  return false;
}

/// A message that only the daemon sends is passed over by the model, while Jackson also looks at
/// its fields, and skips it when it can't read them. To the child both are the same.
void drop_skipped_out_of_place(nlohmann::json& events) {
  std::erase_if(events.get_ref<nlohmann::json::array_t&>(), [](const nlohmann::json& event) {
    return event.contains("skips") &&
           std::holds_alternative<kclxx::daemon_model::unexpected_message>(
               kclxx::daemon_model::parse_child_message(event["skips"].get<std::string>()));
  });
}

/// How many scripts differ.
std::size_t compare_with_model(const std::vector<script>& scripts, std::vector<nlohmann::json> real,
                               const options& chosen) {
  std::size_t differing = 0;
  std::size_t events = 0;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    if (chosen.show) {
      std::cout << scripts[i].name << '\n';
      print_events(real[i]);
    }
    drop_skipped_out_of_place(real[i]);
    events += real[i].size();
    const nlohmann::json model = play_on_model(scripts[i], chosen.version);
    if (!agree(scripts[i], {"the model", model}, {"the real classes", real[i]})) ++differing;
  }
  std::cout << scripts.size() << " scripts, " << events << " events, " << differing << " differ\n";
  return differing;
}

/// The same with processes and pipes in the place of the child that is an object; not those in
/// which the daemon would wait indefinitely.
std::size_t compare_with_processes(std::vector<script> scripts, std::vector<nlohmann::json> real,
                                   const options& chosen) {
  std::vector<script> ending;
  std::vector<nlohmann::json> expected;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    const bool waits = std::any_of(real[i].begin(), real[i].end(),
                                   [](const auto& event) { return event.contains("waits"); });
    if (waits) continue;
    ending.push_back(std::move(scripts[i]));
    expected.push_back(std::move(real[i]));
  }
  std::vector<std::string> java = chosen.java;
  java.push_back(chosen.child);
  const std::vector<nlohmann::json> seen = play_on_real_classes(ending, java);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < ending.size(); ++i) {
    if (!agree(ending[i], {"without a process", expected[i]}, {"with one", seen[i]})) ++differing;
  }
  std::cout << ending.size() << " of them with a child process, " << differing << " differ\n";
  return differing;
}

int compare(const options& chosen) {
  std::vector<script> scripts = scripts_for(chosen);
  std::vector<nlohmann::json> real = play_on_real_classes(scripts, chosen.java);
  std::size_t differing = compare_with_model(scripts, real, chosen);
  if (!chosen.child.empty()) {
    scripts.resize(scripts.size() - chosen.random);  // the cases are enough here
    differing += compare_with_processes(std::move(scripts), std::move(real), chosen);
  }
  return differing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::cout << usage;
    return 0;
  }
  try {
    return compare(parse(arguments));
  } catch (const std::exception& e) {
    std::cerr << "oracle_test: " << e.what() << '\n';
    return 2;
  }
}
