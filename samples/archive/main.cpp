// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "processor.hpp"

int main(int argc, char** argv) {
  commit_limits limits;
  char* end = nullptr;
  const long seconds = argc == 3 ? std::strtol(argv[2], &end, 10) : 60;
  limits.time = std::chrono::seconds(seconds);
  if (argc < 2 || argc > 3 || (end && *end != '\0') || seconds < 1 || seconds > 86'400) {
    std::cerr << "usage: archive DIRECTORY|s3://BUCKET/PREFIX [SECONDS]\n"
                 "Archives JSON events by tenant and hour, each exactly once, at least every\n"
                 "SECONDS (60). DIRECTORY must exist.\n";
    return 2;
  }
  try {
    return kclxx::run(make_processor(kclxx::archive::open_store(argv[1]), limits));
  } catch (const std::exception& error) {
    std::cerr << "archive: " << error.what() << '\n';
    return 2;
  }
}
