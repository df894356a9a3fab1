// SPDX-License-Identifier: Apache-2.0
#include "tool/payloads.hpp"

#include <cstdint>
#include <sstream>
#include <utility>

#include "tool/command_error.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

std::vector<std::string> read_payloads(const std::string& name) {
  std::istringstream lines(text_of_file(name));
  std::vector<std::string> payloads;
  std::uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() > max_payload) {
      cannot_set_up(name + ":" + std::to_string(number) +
                    " is too long: a record has at most 10485760 bytes");
    }
    if (!line.empty()) payloads.push_back(std::move(line));
  }
  if (payloads.empty()) cannot_set_up(name + " has no line with a payload");
  return payloads;
}

}  // namespace kclxx::tool
