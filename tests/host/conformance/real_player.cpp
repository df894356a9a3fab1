// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <memory>
#include <spawn.h>
#include <stdexcept>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "host/conformance/script.hpp"

namespace kclxx::oracle {

namespace {

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

file temporary_file() {
  file result(std::tmpfile(), &std::fclose);
  if (!result) throw std::system_error(errno, std::generic_category(), "a temporary file");
  return result;
}

/// Plain files on both sides: neither program ever waits for the other.
void run(const std::vector<std::string>& command, std::FILE* in, std::FILE* out) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // NOLINT: posix_spawn's signature
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), command.front());
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("the JVM with the real classes failed; it has reported why");
  }
}

}  // namespace

std::vector<nlohmann::json> play_on_real_classes(const std::vector<script>& scripts,
                                                 const std::vector<std::string>& java) {
  const file in = temporary_file();
  const file out = temporary_file();
  for (const script& script : scripts)
    std::fputs((to_json(script).dump() + "\n").c_str(), in.get());
  std::rewind(in.get());  // also flushes
  run(java, in.get(), out.get());
  std::rewind(out.get());

  std::string text;
  char buffer[1 << 16];
  for (std::size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, out.get())) > 0;) {
    text.append(buffer, size);
  }
  std::vector<nlohmann::json> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    result.push_back(nlohmann::json::parse(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  if (result.size() != scripts.size()) {
    throw std::runtime_error("the real classes gave " + std::to_string(result.size()) +
                             " results for " + std::to_string(scripts.size()) + " scripts");
  }
  return result;
}

}  // namespace kclxx::oracle
