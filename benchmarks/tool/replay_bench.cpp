// SPDX-License-Identifier: Apache-2.0
// What `kclxx replay` costs: the same lines written to the same child by a tight loop over plain
// pipes, from memory or from the file, and by the tool from a transcript, in turns.
//   replay_bench KCLXX DIRECTORY [MEGABYTES]
// The transcript goes to DIRECTORY and is removed. The child is this program, which only answers.
// Prints medians, ratios, and the most memory that the tool ever had.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "io/line_writer.hpp"
#include "tool/lockstep.hpp"
#include "tool/process/child_process.hpp"
#include "tool/transcript/line_source.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using kclxx::tool::child_process;
using namespace kclxx::bench;

const std::string begin = initialize();

void play(child_process& child, std::string_view line) {
  kclxx::io::write_all(child.input.get(), line);
  std::size_t newlines = 0;
  while (newlines < 2) {
    char piece[4096];
    const ssize_t n = ::read(child.output.get(), piece, sizeof piece);
    if (n <= 0) throw std::runtime_error("the child ended");
    newlines += static_cast<std::size_t>(std::count(piece, piece + n, '\n'));
  }
}

/// Seconds for all lines by a tight loop, one line of memory again and again.
double plain(const std::vector<std::string>& command, const std::string& line, std::size_t count) {
  const auto start = clock_type::now();
  child_process child(command);
  for (std::size_t i = 0; i <= count; ++i) play(child, i == 0 ? begin : line);
  child.input.close();
  child.wait();
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// The same with lines that are read from the file.
double plain_from(const std::string& file, const std::vector<std::string>& command) {
  const auto start = clock_type::now();
  child_process child(command);
  kclxx::tool::input_file source(file);
  kclxx::transcript::line_source lines(source, std::size_t{1} << 30);
  std::string_view line;
  while (lines.next(line) == kclxx::transcript::line_source::result::line) {
    play(child, {line.data(), line.size() + 1});
  }
  child.input.close();
  child.wait();
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Seconds for all lines by the tool.
double replayed(const std::string& kclxx, const std::string& file,
                const std::vector<std::string>& command) {
  std::vector<std::string> all{kclxx, "replay", file, "--"};
  all.insert(all.end(), command.begin(), command.end());
  const auto start = clock_type::now();
  child_process tool(all);
  char piece[4096];
  while (::read(tool.output.get(), piece, sizeof piece) > 0) {
  }
  if (tool.wait().status != 0) throw std::runtime_error("kclxx replay failed");
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

void compare(const char* name, const std::string& kclxx, const std::string& file,
             const std::string& line, std::size_t bytes) {
  const std::vector<std::string> child{std::filesystem::canonical("/proc/self/exe").string(),
                                       "--answer"};
  const std::size_t count = bytes / line.size();
  {
    std::ofstream out(file);
    out << begin;
    for (std::size_t i = 0; i < count; ++i) out << line;
  }
  std::vector<double> floor;
  std::vector<double> file_floor;
  std::vector<double> tool;
  std::vector<double> ratios;
  std::vector<double> file_ratios;
  for (int round = 0; round < 7; ++round) {
    floor.push_back(plain(child, line, count));
    file_floor.push_back(plain_from(file, child));
    tool.push_back(replayed(kclxx, file, child));
    ratios.push_back(floor.back() / tool.back());
    file_ratios.push_back(file_floor.back() / tool.back());
  }
  std::filesystem::remove(file);
  const double megabytes = static_cast<double>(count * line.size()) / 1e6;
  std::cout << name << ", lines of " << static_cast<double>(line.size()) / 1e3 << " kB: plain "
            << megabytes / median(floor) << " MB/s, plain from the file "
            << megabytes / median(file_floor) << " MB/s, kclxx replay " << megabytes / median(tool)
            << " MB/s, ratios " << median(ratios) << " and " << median(file_ratios) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--answer") return answer_only();
  if (argc < 3) {
    std::cerr << "usage: replay_bench KCLXX DIRECTORY [MEGABYTES]\n";
    return 2;
  }
  const std::size_t bytes = (argc > 3 ? std::stoul(argv[3]) : 500) * 1'000'000;
  const std::string file = std::string(argv[2]) + "/replay_bench.jsonl";
  compare("10,000 records of 1 KiB", argv[1], file, batch(10'000, 1024), bytes);
  compare("1,000 records of 1 KiB", argv[1], file, batch(1000, 1024), bytes);
  compare("10 records of 1 KiB", argv[1], file, batch(10, 1024), bytes);
  rusage of_children{};
  ::getrusage(RUSAGE_CHILDREN, &of_children);
  std::cout << "most memory of one process: " << of_children.ru_maxrss / 1024 << " MiB\n";
}
