// SPDX-License-Identifier: Apache-2.0
// Archives JSON events in gzip files, one or more for each hour, each event exactly once.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "archive.hpp"

int main(int argc, char** argv) {
  archive_limits limits;
  if (argc == 3) limits.time = std::chrono::seconds(std::atoi(argv[2]));
  if (argc < 2 || argc > 3 || !std::filesystem::is_directory(argv[1]) || limits.time.count() <= 0) {
    std::cerr
        << "usage: archive DIRECTORY [SECONDS]\n"
           "Makes a file for each hour and shard at least every SECONDS (60). DIRECTORY must\n"
           "exist, and so must KCLXX_PARKING_DIR, for what is no event.\n";
    return 2;
  }
  return kclxx::run(archive(std::make_shared<folder_store>(argv[1]), limits));
}
