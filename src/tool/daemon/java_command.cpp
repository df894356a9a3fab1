// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/java_command.hpp"

#include <algorithm>
#include <string_view>

#include "tool/daemon/diagnostics.hpp"
#include "tool/process/shell.hpp"

namespace kclxx::tool {

namespace {

std::string value_of(const properties& all, std::string_view key, kcl_version kcl) {
  const property* const one = effective(all, key, kcl);
  return one == nullptr ? "" : one->value;
}

}  // namespace

std::vector<std::string> java_options(bool is_busy, const std::vector<std::string>& given) {
  // Garbage is what costs at a high rate: a call's records are text of several times their size,
  // and dead after it. G1 treats such large objects like old ones; these two collectors do not. The
  // full compiler pays for itself once a method has run for long, which at a low rate is never. The
  // KCL's classes take more than the 21 MiB at which Java otherwise begins to collect them.
  const std::vector<std::string> ours =
      is_busy ? std::vector<std::string>{"-XX:+UseParallelGC", "-XX:MaxRAMPercentage=50",
                                         "-XX:NewRatio=1", "-XX:MetaspaceSize=96m"}
              : std::vector<std::string>{"-XX:+UseSerialGC", "-XX:MaxRAMPercentage=50",
                                         "-XX:MaxNewSize=64m", "-XX:TieredStopAtLevel=1",
                                         "-XX:MetaspaceSize=96m"};
  const auto is_collector = [](std::string_view option) {
    return option.starts_with("-XX:+Use") && option.ends_with("GC");
  };
  const auto is_decided = [&](std::string_view option) {
    return std::any_of(given.begin(), given.end(), [&](std::string_view one) {
      return is_collector(option)
                 ? is_collector(one)  // Java refuses two
                 : one.substr(0, one.find('=')) == option.substr(0, option.find('='));
    });
  };
  std::vector<std::string> left;
  std::copy_if(ours.begin(), ours.end(), std::back_inserter(left),
               [&](const std::string& one) { return !is_decided(one); });
  return left;
}

std::string settle_worker_id(properties& all, kcl_version kcl, const std::string& made) {
  std::string id = value_of(all, "workerId", kcl);
  if (id.empty() && kcl != kcl_version::kcl1) id = value_of(all, "workerIdentifier", kcl);
  if (id.empty()) id = made;
  std::erase_if(all, [](const property& one) {
    return one.key == "workerId" || one.key == "workerIdentifier";
  });
  all.push_back({"workerId", id, 0, "worker id"});
  return id;
}

void share_children(properties& all, const std::string& launcher) {
  for (property& one : all) {
    if (one.key != "executableName") continue;
    const std::string program = one.value.substr(0, one.value.find(' '));
    if (program == "kclxx-share" || program.ends_with("/kclxx-share")) continue;
    one.value.insert(0, launcher + " ");
  }
}

std::string stream_name(const properties& all, kcl_version kcl) {
  const std::string arn = kcl == kcl_version::kcl1 ? "" : value_of(all, "streamArn", kcl);
  const auto slash = arn.find('/');
  return slash == std::string::npos ? value_of(all, "streamName", kcl) : arn.substr(slash + 1);
}

launch compose(const launch_settings& settings, const properties& all) {
  launch made;
  std::vector<std::string>& command = made.command;
  // file.encoding: below JDK 18 the daemon would otherwise talk to its children in the system's
  // character set.
  command = {settings.java, "-Dfile.encoding=UTF-8"};
  std::vector<std::string> given = settings.java_options;
  given.insert(given.end(), settings.java_variables.begin(), settings.java_variables.end());
  const std::vector<std::string> chosen = java_options(settings.is_busy, given);
  command.insert(command.end(), chosen.begin(), chosen.end());
  const bool is_first = settings.which == kcl_version::kcl1;
  if (is_first) command.push_back("-Djava.util.logging.config.file=" + settings.logging_file);
  command.insert(command.end(), {"-cp", settings.class_path});
  command.insert(command.end(), settings.java_options.begin(), settings.java_options.end());
  command.emplace_back(main_class(settings.which));
  if (is_first) {
    command.push_back(settings.properties_file);
  } else {
    command.insert(command.end(), {"-p", settings.properties_file, "-l", settings.logging_file});
  }
  const auto show = [&](const char* name, const std::string& value) {
    if (!value.empty()) made.environment.emplace_back(name, value);
  };
  show("KCLXX_APPLICATION_NAME", value_of(all, "applicationName", settings.which));
  show("KCLXX_STREAM_NAME", stream_name(all, settings.which));
  show("KCLXX_WORKER_ID", value_of(all, "workerId", settings.which));
  return made;
}

std::string shell_command(const launch& start, const std::vector<inline_file>& files) {
  std::string text;
  for (const auto& [name, value] : start.environment) {
    text += "export " + name + "=" + shell_word(value) + "\n";
  }
  text += "exec";  // signals to the shell's process reach Java
  for (const std::string& one : start.command) text += " " + shell_word(one);
  const auto end_of = [](const inline_file& file) {
    return "END_OF_" + std::to_string(file.descriptor);
  };
  for (const inline_file& file : files) {
    text += " " + std::to_string(file.descriptor) + "<<'" + end_of(file) + "'";
  }
  text += "\n";
  for (const inline_file& file : files) text += file.text + end_of(file) + "\n";
  return text;
}

}  // namespace kclxx::tool
