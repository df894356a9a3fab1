// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/class_archive.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/daemon/java_command.hpp"
#include "tool/package_cache.hpp"
#include "tool/process/run_program.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

constexpr int first_java = 17;  // the oldest one that this was tried with

/// Which Java a program is.
struct java_release {
  int major = 0;     // 8, 11, 17 ...; 0: not known
  std::string text;  // differs from that of any other build
};

int major_in(std::string_view text) {
  for (const std::string_view before : {"JAVA_VERSION=\"", " version \""}) {
    const auto at = text.find(before);
    if (at == std::string_view::npos) continue;
    text.remove_prefix(at + before.size());
    if (text.starts_with("1.")) text.remove_prefix(2);  // Java 8 is 1.8.0
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  return 0;
}

/// Reads the file `release` beside the program's folder. Where there is none, as in some packages
/// of Java 8, it runs `java -version`.
java_release release_of(const std::string& java) {
  std::error_code error;
  const auto program = fs::canonical(java, error);
  std::ifstream file(program.parent_path().parent_path() / "release");
  if (!error && file) {
    std::ostringstream text;
    text << program.string() << '\n' << file.rdbuf();
    const int major = major_in(text.str());
    if (major != 0) return {major, text.str()};
  }
  std::string text = program.string() + '\n';
  run_program({java, "-version"}, environment(),
              [&](std::string_view piece, pid_t) { text += piece; });
  return {major_in(text), text};
}

fs::path place_of_archive(const fs::path& jars) { return jars.string() + ".classes"; }
fs::path archive_in(const fs::path& folder) { return folder / "classes.jsa"; }
fs::path note_in(const fs::path& folder) { return folder / "made-for"; }

/// So that nothing but an archive is replaced by one.
void expect_archive_or_nothing(const fs::path& place) {
  if (!fs::exists(place)) return;
  for (const auto& entry : fs::directory_iterator(place)) {
    if (entry.path() == archive_in(place) || entry.path() == note_in(place)) continue;
    cannot_set_up(place.string() + ", the place of the class archive, has " +
                  entry.path().filename().string() + ", which is not kclxx's; move it away");
  }
}

/// What the archive depends on: Java, and of the jars what Java compares. Empty: there is none.
std::string note_for(const java_release& release, const fs::path& jars, const fs::path& archive) {
  std::error_code error;
  const auto size = fs::file_size(archive, error);
  if (error) return {};
  std::set<std::string> lines;
  for (const auto& entry : fs::directory_iterator(jars, error)) {
    if (entry.path().extension() != ".jar") continue;
    std::error_code ignored;
    std::ostringstream line;
    // Java compares seconds, which are also all that an image keeps.
    line << entry.path().string() << ' ' << entry.file_size(ignored) << ' '
         << std::chrono::floor<std::chrono::seconds>(entry.last_write_time(ignored))
                .time_since_epoch()
                .count()
         << '\n';
    lines.insert(line.str());
  }
  std::string note = release.text + "archive " + std::to_string(size) + "\n";
  for (const std::string& line : lines) note += line;
  return note;
}

bool is_for(const fs::path& folder, const java_release& release, const fs::path& jars) {
  const std::string expected = note_for(release, jars, archive_in(folder));
  std::ifstream file(note_in(folder));
  std::ostringstream note;
  note << file.rdbuf();
  return !expected.empty() && note.str() == expected;
}

/// Nothing listens at port 1, and no account is asked.
std::string training_properties(kcl_version kcl) {
  std::string text =
      "executableName = true\n"
      "applicationName = kclxx-class-archive\n"
      "streamName = kclxx-class-archive\n"
      "regionName = us-east-1\n"
      "kinesisEndpoint = https://127.0.0.1:1\n"
      "dynamoDBEndpoint = https://127.0.0.1:1\n"
      "initialPositionInStream = TRIM_HORIZON\n"
      "metricsLevel = NONE\n";
  text += kcl == kcl_version::kcl3
              ? "AwsCredentialsProvider = DefaultCredentialsProvider\n"
              : "AWSCredentialsProvider = DefaultAWSCredentialsProviderChain\n";
  if (kcl != kcl_version::kcl1) text += "retrievalMode = POLLING\n";
  return text;
}

/// Without what concerns the user's account or other starts of Java.
std::vector<std::string> training_environment() {
  std::vector<std::string> variables = environment();
  std::erase_if(variables, [](const std::string& one) {
    static constexpr std::array<std::string_view, 4> unwanted{
        "AWS_", "JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS="};
    return std::any_of(unwanted.begin(), unwanted.end(),
                       [&](std::string_view name) { return one.starts_with(name); });
  });
  variables.insert(variables.end(), {"AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none",
                                     "AWS_EC2_METADATA_DISABLED=true"});
  return variables;
}

/// The daemon with those options, until its first exception: it would try again for minutes.
void train(const std::string& java, const fs::path& folder, const fs::path& jars, kcl_version kcl) {
  const fs::path settings = folder / "properties";
  const fs::path logging = folder / "logging";
  write_file(settings, training_properties(kcl));
  write_file(logging, logging_of(kcl));
  launch_settings training;
  training.which = kcl;
  training.java = java;
  training.jars = jars.string();
  training.properties_file = settings.string();
  training.logging_file = logging.string();
  training.java_options = {"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                           "-XX:ArchiveClassesAtExit=" + archive_in(folder).string()};
  std::vector<std::string> command{"timeout", "-s", "KILL", "600"};
  for (std::string& word : compose(training, {}).command) command.push_back(std::move(word));
  std::string seen;
  bool is_told_to_end = false;
  std::error_code error;
  run_program(command, training_environment(), [&](std::string_view piece, pid_t program) {
    seen += piece;
    if (is_told_to_end || seen.find("Exception") == std::string::npos) return;
    ::kill(program, SIGTERM);
    is_told_to_end = true;
  });
  fs::remove(settings);
  fs::remove(logging);
  if (!fs::exists(archive_in(folder), error)) cannot_set_up("Java did not make it");
}

/// Java's own verdict.
void expect_usable(const std::string& java, const fs::path& archive, const fs::path& jars) {
  std::string output;
  const int status =
      run_program({java, "-Xshare:on", "-XX:SharedArchiveFile=" + archive.string(), "-cp",
                   jars.string() + "/*", "-version"},
                  training_environment(), [&](std::string_view piece, pid_t) { output += piece; });
  if (status == 0) return;
  while (output.ends_with('\n')) output.pop_back();
  std::replace(output.begin(), output.end(), '\n', ' ');
  cannot_set_up("Java does not accept it: " + output);
}

}  // namespace

class_archive find_class_archive(const std::string& java, const fs::path& jars) {
  const java_release release = release_of(java);
  if (release.major < first_java) return {};
  const fs::path place = place_of_archive(jars);
  std::error_code error;
  if (!fs::exists(place, error)) return {{}, "there is no class archive for these jars"};
  if (!is_for(place, release, jars)) {
    return {{}, "the class archive is for another Java or other jars, or was cut off"};
  }
  return {archive_in(place).string(), {}};
}

void make_class_archive(const std::string& java, const fs::path& jars, kcl_version kcl) {
  const java_release release = release_of(java);
  if (release.major < first_java) return;
  const fs::path place = place_of_archive(jars);
  const auto is_complete = [&](const fs::path& folder) { return is_for(folder, release, jars); };
  const auto fill = [&](const fs::path& folder) {
    expect_archive_or_nothing(place);
    std::cerr << "Java archives the daemon's classes, for a faster start; this takes some seconds."
              << std::endl;
    train(java, folder, jars, kcl);
    expect_usable(java, archive_in(folder), jars);
    write_file(note_in(folder), note_for(release, jars, archive_in(folder)));
    std::error_code ignored;
    fs::remove_all(place, ignored);  // what is for other jars or another Java
  };
  fetch_folder({place, is_complete, fill});
}

}  // namespace kclxx::tool
