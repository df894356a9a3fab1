// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of the tool have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <unistd.h>
#include <vector>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"

namespace kclxx::bench {

/// The child that only answers: it looks for the end of each line, and at its beginning.
inline int answer_only() {
  const std::string status[2] = {"\n{\"action\":\"status\",\"responseFor\":\"initialize\"}\n",
                                 "\n{\"action\":\"status\",\"responseFor\":\"processRecords\"}\n"};
  std::vector<char> piece(std::size_t{1} << 18);
  int answered = 0;
  ssize_t n = 0;
  while ((n = ::read(STDIN_FILENO, piece.data(), piece.size())) > 0) {
    if (piece[static_cast<std::size_t>(n) - 1] != '\n') continue;  // in lockstep no more follows
    const std::string& one = status[std::min(answered++, 1)];
    if (::write(STDOUT_FILENO, one.data(), one.size()) == -1) return 1;
  }
  return 0;
}

inline std::string initialize() {
  return daemon_model::initialize_line("shardId-000000000000", sequence_position("TRIM_HORIZON")) +
         "\n";
}

/// A line with so many records of this size, words that can be counted.
inline std::string batch(std::size_t records, std::size_t size) {
  std::string text;
  while (text.size() < size) text += "some words of a text that is counted ";
  text.resize(size);
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < records; ++i) {
    numbers.push_back("4960000000000000000000000000000000000000000000" +
                      std::to_string(1000000000 + i));
  }
  std::vector<record> all;
  for (const std::string& number : numbers) {
    record::fields one;
    one.data = text;
    one.partition_key = "key";
    one.sequence_number = number;
    one.approximate_arrival_timestamp = std::chrono::milliseconds(1'600'000'000'000);
    all.emplace_back(one);
  }
  return daemon_model::process_records_line(all, 0) + "\n";
}

inline double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

}  // namespace kclxx::bench
