// SPDX-License-Identifier: Apache-2.0
#include "tool/process/exec.hpp"

#include <unistd.h>

#include "tool/command_error.hpp"

namespace kclxx::tool {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void exec(std::vector<std::string> command) {
  ::execv(command.front().c_str(), pointers_to(command).data());
  cannot_set_up(command.front(), "started");
}

}  // namespace kclxx::tool
