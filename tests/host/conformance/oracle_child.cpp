// SPDX-License-Identifier: Apache-2.0
// A child that plays its turns, which are its only argument, whatever the daemon sends: the form is
// that of "child" in a script for java/common/Oracle.java.
#include <cstddef>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "host/conformance/script.hpp"

namespace {

using kclxx::oracle::turn;

bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int play(const std::vector<std::vector<turn>>& child) {
  std::size_t calls = 0;
  std::size_t answers = 0;
  bool output_ended = false;
  // Until the end of input, as a child should.
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with(R"({"action":"checkpoint")")) {
      ++answers;
    } else {
      ++calls;
      answers = 0;
    }
    if (output_ended || calls > child.size() || answers >= child[calls - 1].size()) continue;
    const turn& next = child[calls - 1][answers];
    if (!write_all(next.write)) return 1;
    output_ended = next.end;
    if (output_ended) close(STDOUT_FILENO);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: oracle_child TURNS\n";
    return 2;
  }
  try {
    return play(kclxx::oracle::child_from_json(nlohmann::json::parse(argv[1])));
  } catch (const std::exception& e) {
    std::cerr << "oracle_child: " << e.what() << '\n';
    return 2;
  }
}
