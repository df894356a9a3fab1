// SPDX-License-Identifier: Apache-2.0
// executableName: split at blanks, with no quoting, no shell, no variables. After kclxx-share and
// kclxx capture comes the program.
#include <optional>
#include <string>

#include "tool/daemon/diagnostics.hpp"

namespace kclxx::tool {

namespace {

/// The path with blanks that was meant, when there is a program of that name.
std::string path_with_blanks(const std::string& command, const executable_look& look) {
  for (auto end = command.find(' '); end != std::string::npos; end = command.find(' ', end + 1)) {
    const auto next = command.find(' ', end + 1);
    std::string longer = command.substr(0, next);
    const executable_state state = look(longer);
    if (state == executable_state::ok || state == executable_state::not_executable) return longer;
  }
  return "";
}

std::string relative_note(const std::string& program) {
  if (program.starts_with('/')) return "";
  if (program.find('/') == std::string::npos) return " A bare name is looked up in PATH.";
  return " A relative path starts at the daemon's working directory; this check took its own.";
}

/// Without its first word.
std::string rest_of(const std::string& command) {
  const auto end = command.find(' ');
  const auto next = command.find_first_not_of(' ', end);
  return next == std::string::npos ? "" : command.substr(next);
}

bool is_named(const std::string& program, const std::string& name) {
  return program == name || program.ends_with("/" + name);
}

std::string first_word(const std::string& command) { return command.substr(0, command.find(' ')); }

/// What a program that starts another one is given to start; std::nullopt: it is none of ours.
std::optional<std::string> started_by(const std::string& command) {
  const std::string program = first_word(command);
  std::string rest = rest_of(command);
  if (is_named(program, "kclxx-share")) return rest.starts_with("-- ") ? rest_of(rest) : rest;
  if (!is_named(program, "kclxx") || first_word(rest) != "capture") return std::nullopt;
  while (!rest.empty() && first_word(rest) != "--") rest = rest_of(rest);
  return rest_of(rest);
}

/// "2>log", "|", "done;"
bool is_of_shell(const std::string& word) {
  const auto after_digits = word.find_first_not_of("0123456789");
  const bool redirects =
      after_digits != std::string::npos && (word[after_digits] == '<' || word[after_digits] == '>');
  return redirects || word.find_first_not_of("|&;") == std::string::npos || word.back() == ';' ||
         word.back() == '&';
}

/// The first word that only a shell would understand.
std::string word_for_shell(const std::string& command) {
  for (std::string rest = command; !rest.empty(); rest = rest_of(rest)) {
    const std::string word = first_word(rest);
    if (word.find_first_of("\"'") != std::string::npos || is_of_shell(word)) {
      return word;
    }
  }
  return "";
}

constexpr const char* of_shell_in_name = "\"'~$`*";

}  // namespace

executable_state look_at_name(const std::string& program) {
  const bool is_plain = program.find_first_of(of_shell_in_name) == std::string::npos;
  return is_plain ? executable_state::ok : executable_state::missing;
}

void check_executable(const properties& all, const executable_look& look,
                      std::vector<diagnostic>& problems) {
  const property* const place = find(all, "executableName");
  if (place == nullptr) return;
  std::string command = place->value;
  std::string program = first_word(command);
  if (program.empty()) return;  // an empty value is reported as missing
  const auto say = [&](const std::string& problem, const std::string& reason,
                       const std::string& fix) {
    problems.push_back(
        diagnostic_at(*place, severity::error, "executableName " + problem, reason, fix));
  };
  const std::string no_child = "No child can be started: the worker ends with the first shard.";
  bool is_shared = false;
  bool is_captured = false;
  while (look(program) == executable_state::ok) {
    const auto started = started_by(command);
    if (!started) break;
    if (started->empty()) {
      return say("names " + program + " and no program", no_child,
                 "Write the program and its arguments after it.");
    }
    (is_named(program, "kclxx-share") ? is_shared : is_captured) = true;
    command = *started;
    program = first_word(command);
  }
  if (is_shared && is_captured) {
    return say("has kclxx-share and kclxx capture",
               "capture is the parent of what it starts, and no program that can be shared: each "
               "shard gets a process of its own.",
               "Leave out one of the two.");
  }
  const executable_state state = look(program);
  if (state == executable_state::ok) {
    const std::string word = word_for_shell(rest_of(command));
    if (word.empty()) return;
    problems.push_back(diagnostic_at(*place, severity::warning, "executableName has " + word,
                                     "There is no shell: the program gets it as an argument.",
                                     "Let a script that executableName names do it."));
    return;
  }
  if (const std::string meant = path_with_blanks(command, look); !meant.empty()) {
    say("names \"" + meant + "\", which has a blank",
        "The daemon splits it at blanks, without quoting, and starts \"" + program + "\".",
        "Use a path without blanks; a symbolic link will do.");
  } else if (program.find_first_of(of_shell_in_name) != std::string::npos) {
    say("has quotes, ~ or $ in \"" + program + "\"",
        "There is no shell: they are read as part of the name. " + no_child,
        "Write the path itself, without blanks.");
  } else if (state == executable_state::missing) {
    say("names \"" + program + "\", which is not there", no_child,
        "Write the program's path." + relative_note(program));
  } else if (state == executable_state::directory) {
    say("names \"" + program + "\", which is a directory", no_child, "Write the program's path.");
  } else {
    say("names \"" + program + "\", which cannot be executed", no_child, "chmod +x " + program);
  }
}

}  // namespace kclxx::tool
