// SPDX-License-Identifier: Apache-2.0
// Holds the daemon model against the daemon's real classes.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "host/conformance/script.hpp"
#include "tool/files.hpp"
#include "tool/process/program.hpp"

namespace {

using namespace kclxx::oracle;

struct options {
  std::filesystem::path cases{};
  std::uint64_t random = 0;
  std::uint64_t seed = 1;
  bool show = false;
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

/// Plays the scripts on the real classes, in one JVM that is started with these arguments. The
/// events of each, in the scripts' order.
/// Blocking: until the JVM has ended.
/// Errors: std::runtime_error when it cannot be started, fails, or answers less than it was asked.
std::vector<nlohmann::json> play_on_real_classes(const std::vector<script>& scripts,
                                                 const std::vector<std::string>& java) {
  namespace tool = kclxx::tool;
  const tool::temporary_folder folder(std::filesystem::temp_directory_path() / "oracle-");
  std::string lines;
  for (const script& script : scripts) lines += to_json(script).dump() + "\n";
  tool::write_file(folder.path() / "scripts", lines);
  std::vector<std::string> command{"sh", "-c", R"(exec "$@" <"$0")", folder.path() / "scripts"};
  command.insert(command.end(), java.begin(), java.end());
  const tool::program_result jvm = tool::run_program(command);
  std::cerr << jvm.error;
  if (!jvm.end.is_success()) {
    throw std::runtime_error("the JVM with the real classes failed; it has reported why");
  }
  std::vector<nlohmann::json> result;
  std::istringstream output(jvm.output);
  for (std::string line; std::getline(output, line);) {
    result.push_back(nlohmann::json::parse(line));
  }
  if (result.size() != scripts.size()) {
    throw std::runtime_error("the real classes gave " + std::to_string(result.size()) +
                             " results for " + std::to_string(scripts.size()) + " scripts");
  }
  return result;
}

void print_events(const nlohmann::json& events) {
  for (const auto& event : events) std::cout << "    " << event.dump() << '\n';
}

/// Whether the model and the real classes have the same events; prints where they differ.
bool agree(const script& played, const nlohmann::json& model, const nlohmann::json& real) {
  if (model == real) return true;
  const auto [at, real_at] = std::mismatch(model.begin(), model.end(), real.begin(), real.end());
  std::cout << "they differ in: " << played.name << "\n  script: " << to_json(played).dump()
            << "\n  both:\n";
  print_events(nlohmann::json(std::vector<nlohmann::json>(model.begin(), at)));
  std::cout << "  the model: " << (at == model.end() ? "nothing" : at->dump())
            << "\n  the real classes: " << (real_at == real.end() ? "nothing" : real_at->dump())
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

/// Exit status.
int compare(const options& chosen) {
  const std::vector<script> scripts = scripts_for(chosen);
  std::vector<nlohmann::json> real = play_on_real_classes(scripts, chosen.java);
  std::size_t differing = 0;
  std::size_t events = 0;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    if (chosen.show) {
      std::cout << scripts[i].name << '\n';
      print_events(real[i]);
    }
    drop_skipped_out_of_place(real[i]);
    events += real[i].size();
    if (!agree(scripts[i], play_on_model(scripts[i]), real[i])) ++differing;
  }
  std::cout << scripts.size() << " scripts, " << events << " events, " << differing << " differ\n";
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
  app.add_flag("--show", chosen.show, "Print every script with the real classes' events");
  app.add_option("JAVA", chosen.java, "Starts java/Oracle.java: run oracle KCLXX KCL")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return compare(chosen);
  } catch (const std::exception& e) {
    std::cerr << "oracle_test: " << e.what() << '\n';
    return 2;
  }
}
