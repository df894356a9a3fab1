// SPDX-License-Identifier: Apache-2.0
// Holds the daemon model against the daemon's real classes.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "host/conformance/script.hpp"

namespace {

using namespace kclxx::oracle;

struct options {
  std::filesystem::path cases{};
  std::uint64_t random = 0;
  std::uint64_t seed = 1;
  bool show = false;
  std::string child{};
  std::vector<std::string> java{};
};

std::vector<script> scripts_for(const options& chosen) {
  std::vector<script> result;
  if (!chosen.cases.empty()) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(chosen.cases)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      for (script& script : read_cases(file)) result.push_back(std::move(script));
    }
  }
  for (std::uint64_t i = 0; i < chosen.random; ++i) {
    result.push_back(random_script(chosen.seed + i));
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
    const nlohmann::json model = play_on_model(scripts[i]);
    if (!agree(scripts[i], {"the model", model}, {"the real classes", real[i]})) ++differing;
  }
  std::cout << scripts.size() << " scripts, " << events << " events, " << differing << " differ\n";
  return differing;
}

/// Compares the scripts again with a process and pipes in place of the child that is an object, but
/// for the scripts in which the daemon would wait indefinitely.
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
  options chosen;
  CLI::App app(
      "Plays scripts on src/daemon_model and on the daemon's real classes, and compares what "
      "happens, event by event. Exit status: 0 all agree, 1 some differ (each is printed), another "
      "one: it could not be done.");
  app.add_option("--cases", chosen.cases, "Play the cases of each .json file in this folder");
  app.add_option("--random", chosen.random, "Play so many random scripts, each with its seed");
  app.add_option("--seed", chosen.seed, "The first seed")->capture_default_str();
  app.add_option("--child", chosen.child,
                 "Play the cases with a child process, too: the program oracle_child");
  app.add_flag("--show", chosen.show, "Print every script with the real classes' events");
  app.add_option("JAVA", chosen.java, "Starts java/common/Oracle.java: java/run KCLXX KCL")
      ->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return compare(chosen);
  } catch (const std::exception& e) {
    std::cerr << "oracle_test: " << e.what() << '\n';
    return 2;
  }
}
