// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "word_count.hpp"

int main(int argc, char** argv) {
  int seconds = 5;
  const std::string_view last = argc == 3 ? argv[2] : "5";
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), seconds);
  if (argc < 2 || argc > 3 || error != std::errc() || end != last.data() + last.size() ||
      seconds < 0) {
    std::cerr << "usage: word_count DIRECTORY [SECONDS]\n"
                 "Counts words in DIRECTORY, which must exist; flushes every SECONDS (5).\n";
    return 2;
  }
  if (!std::filesystem::is_directory(argv[1])) {
    std::cerr << "word_count: " << argv[1] << " is not a directory\n";
    return 2;
  }
  kclxx::run_options options;
  options.checkpoint_interval = std::chrono::seconds(0);  // the flushes are paced
  return kclxx::run(word_count(argv[1], std::chrono::seconds(seconds)), options);
}
