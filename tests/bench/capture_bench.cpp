// SPDX-License-Identifier: Apache-2.0
// What `kclxx capture` costs: the same dialogue with a child directly and through it, in turns.
//   capture_bench KCLXX DIRECTORY [CHILD ARGUMENT...]
// The transcripts go to DIRECTORY and are removed. Without a CHILD it is this program itself,
// which only answers. Prints medians and ratios.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "bench/lockstep.hpp"
#include "cli/child_process.hpp"
#include "io/line_writer.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using kclxx::cli::child_process;
using namespace kclxx::bench;

constexpr std::string_view answer =
    R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":null})"
    "\n";

class daemon_side {
 public:
  explicit daemon_side(const std::vector<std::string>& command) : child_(command) {
    exchange(initialize());
  }
  ~daemon_side() {
    child_.input.close();
    child_.wait();
  }
  daemon_side(const daemon_side&) = delete;
  daemon_side& operator=(const daemon_side&) = delete;

  /// Sends a line and waits for its status, answering checkpoints meanwhile.
  void exchange(std::string_view line) {
    kclxx::io::write_all(child_.input.get(), line);
    bool is_done = false;
    while (!is_done) {
      char piece[4096];
      const ssize_t n = ::read(child_.output.get(), piece, sizeof piece);
      if (n <= 0) throw std::runtime_error("the child ended");
      read_.append(piece, static_cast<std::size_t>(n));
      for (std::size_t end = 0; (end = read_.find('\n')) != std::string::npos;) {
        const std::string one = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (one.find("\"checkpoint\"") != std::string::npos) {
          kclxx::io::write_all(child_.input.get(), answer);
        }
        is_done = is_done || one.find("\"status\"") != std::string::npos;
      }
    }
  }

 private:
  child_process child_;
  std::string read_;
};

/// Seconds for one exchange of `line`, on average over `count`.
double seconds_each(const std::vector<std::string>& command, const std::string& line, int count) {
  daemon_side daemon(command);
  daemon.exchange(line);
  const auto start = clock_type::now();
  for (int i = 0; i < count; ++i) daemon.exchange(line);
  return std::chrono::duration<double>(clock_type::now() - start).count() / count;
}

struct comparison {
  double direct;
  double captured;
  double ratio;  // of speeds: median over the pairs
};

comparison compare(const std::vector<std::string>& child, const std::vector<std::string>& capture,
                   const std::string& directory, const std::string& line, int count, int rounds) {
  std::vector<double> direct;
  std::vector<double> captured;
  std::vector<double> ratios;
  std::vector<std::string> through = capture;
  through.insert(through.end(), child.begin(), child.end());
  for (int round = 0; round < rounds; ++round) {
    direct.push_back(seconds_each(child, line, count));
    captured.push_back(seconds_each(through, line, count));
    ratios.push_back(direct.back() / captured.back());
    std::filesystem::remove_all(directory);
  }
  return {median(direct), median(captured), median(ratios)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--answer") return answer_only();
  if (argc < 3) {
    std::cerr << "usage: capture_bench KCLXX DIRECTORY [CHILD ARGUMENT...]\n";
    return 2;
  }
  const std::string directory = std::string(argv[2]) + "/capture_bench";
  std::vector<std::string> child(argv + 3, argv + argc);
  if (child.empty()) child = {std::filesystem::canonical(argv[0]).string(), "--answer"};
  const std::vector<std::string> capture{argv[1], "capture", "--output", directory, "--"};

  const std::string large = batch(1000, 1024);
  const comparison bulk = compare(child, capture, directory, large, 60, 9);
  const double megabytes = static_cast<double>(large.size()) / 1e6;
  std::cout << "1,000 records of 1 KiB: " << megabytes / bulk.direct << " MB/s direct, "
            << megabytes / bulk.captured << " MB/s captured, ratio " << bulk.ratio << "\n";
  const comparison small = compare(child, capture, directory, batch(10, 100), 1000, 5);
  std::cout << "10 records of 100 B: " << small.direct * 1e6 << " us a round trip direct, "
            << small.captured * 1e6 << " us captured, " << (small.captured - small.direct) * 1e6
            << " us added\n";
}
