// SPDX-License-Identifier: Apache-2.0
#include "lockstep.hpp"

#include <stdexcept>
#include <string>

namespace bench {
namespace {

// The clients differ in the spaces and the order of what they write, so words are looked for.
bool has(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

[[noreturn]] void unexpected(std::string_view line, std::string_view name) {
  throw std::runtime_error("in " + std::string(name) + " the child wrote: " + std::string(line));
}

}  // namespace

void lockstep::exchange(std::string_view name, std::string_view line, std::string_view position) {
  child_.write(line);
  while (true) {
    const std::string_view reply = child_.read_line();
    if (has(reply, R"("status")")) {
      if (!has(reply, name)) unexpected(reply, name);
      return;
    }
    if (!has(reply, R"("checkpoint")")) unexpected(reply, name);
    if (!has(reply, position.empty() ? "null" : position)) unexpected(reply, name);
    answer_checkpoint(position);
  }
}

void lockstep::answer_checkpoint(std::string_view position) {
  ++checkpoints_;
  std::string text = R"({"action":"checkpoint","sequenceNumber":)";
  if (position.empty()) {
    text += "null,\"subSequenceNumber\":null,\"error\":null}\n";
  } else {
    text += '"';
    text += position;
    text += "\",\"subSequenceNumber\":0,\"error\":null}\n";
  }
  child_.write(text);
}

}  // namespace bench
