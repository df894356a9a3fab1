// SPDX-License-Identifier: Apache-2.0
// What `kclxx capture` costs: the same dialogue with a child directly and through it, in turns. For
// a floor, also through `cat` and through `tee FILE`, each before and after the child.
//   capture_bench KCLXX DIRECTORY [CHILD ARGUMENT...]
// The transcripts go to DIRECTORY and are removed. Without a CHILD it is this program itself,
// which only answers. Prints medians and ratios, and the CPU time of all processes together.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "io/line_writer.hpp"
#include "tool/lockstep.hpp"
#include "tool/process/child_process.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using kclxx::tool::child_process;
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

struct cost {
  double seconds = 0;  // for one exchange, on average
  double cpu = 0;      // seconds of all processes together, with their start
};

double cpu_seconds() {
  double all = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& one : {used.ru_utime, used.ru_stime}) {
      all += static_cast<double>(one.tv_sec) + static_cast<double>(one.tv_usec) / 1e6;
    }
  }
  return all;
}

/// A batch whose sequence numbers can be raised, so that a child does not know its records already.
class batches {
 public:
  explicit batches(std::string line) : line_(std::move(line)) {
    constexpr std::string_view key = R"("sequenceNumber":")";
    for (auto at = line_.find(key); at != std::string::npos; at = line_.find(key, at)) {
      at += key.size();
      places_.push_back(at + 10);  // of ten zeros
    }
  }
  const std::string& next() {
    std::string number = std::to_string(++number_);
    number.insert(0, 10 - number.size(), '0');
    for (const std::size_t at : places_) line_.replace(at, number.size(), number);
    return line_;
  }
  [[nodiscard]] std::size_t size() const { return line_.size(); }

 private:
  std::string line_;
  std::vector<std::size_t> places_;
  std::uint64_t number_ = 0;
};

cost of_one(const std::vector<std::string>& command, batches line, int count) {
  cost one;
  const double cpu_before = cpu_seconds();
  {
    daemon_side daemon(command);
    daemon.exchange(line.next());
    const auto start = clock_type::now();
    for (int i = 0; i < count; ++i) daemon.exchange(line.next());
    one.seconds = std::chrono::duration<double>(clock_type::now() - start).count() / count;
  }
  one.cpu = (cpu_seconds() - cpu_before) / (count + 1);
  return one;
}

/// A way from the daemon to the child and back.
struct way {
  const char* name;
  std::vector<std::string> command;
  std::vector<double> seconds{};
  std::vector<double> cpu{};
  std::vector<double> ratios{};  // of speeds, to the first way in the same round
};

void run_in_turns(std::vector<way>& ways, const std::string& directory, const batches& line,
                  int count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (way& one : ways) {
      std::filesystem::create_directories(directory);
      const cost took = of_one(one.command, line, count);
      one.seconds.push_back(took.seconds);
      one.cpu.push_back(took.cpu);
      one.ratios.push_back(ways.front().seconds.back() / took.seconds);
      std::filesystem::remove_all(directory);
    }
  }
}

void print_bulk(const std::vector<way>& ways, double megabytes) {
  for (const way& one : ways) {
    std::cout << "  " << one.name << ": " << megabytes / median(one.seconds) << " MB/s, ratio "
              << median(one.ratios) << ", " << median(one.cpu) / megabytes * 1000
              << " s of CPU for a GB\n";
  }
}

void print_small(const std::vector<way>& ways) {
  const double direct = median(ways.front().seconds);
  for (const way& one : ways) {
    std::cout << "  " << one.name << ": " << median(one.seconds) * 1e6 << " us a round trip, "
              << (median(one.seconds) - direct) * 1e6 << " us added\n";
  }
}

std::vector<way> ways_to(const std::vector<std::string>& child, const std::string& kclxx,
                         const std::string& directory) {
  std::vector<way> ways{
      {"direct", {}},
      {"kclxx capture", {kclxx, "capture", "--output", directory, "--"}},
      {"cat", {"/bin/sh", "-c", "cat | \"$@\" | cat", "sh"}},
      {"tee", {"/bin/sh", "-c", "d=$1; shift; tee $d/in | \"$@\" | tee $d/out", "sh", directory}}};
  for (way& one : ways) one.command.insert(one.command.end(), child.begin(), child.end());
  return ways;
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

  const batches large(batch(1000, 1024));
  std::vector<way> bulk = ways_to(child, argv[1], directory);
  run_in_turns(bulk, directory, large, 60, 15);
  std::cout << "1,000 records of 1 KiB\n";
  print_bulk(bulk, static_cast<double>(large.size()) / 1e6);
  std::vector<way> small = ways_to(child, argv[1], directory);
  run_in_turns(small, directory, batches(batch(10, 100)), 1000, 7);
  std::cout << "10 records of 100 B\n";
  print_small(small);
}
