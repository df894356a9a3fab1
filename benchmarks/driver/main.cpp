// SPDX-License-Identifier: Apache-2.0
// Plays the daemon for one client and measures it: side_by_side_driver JOB COMMAND...
// JOB is a JSON object; measure.hpp has its keys. The result is one JSON object on stdout.
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "measure.hpp"
#include "measured_child.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: side_by_side_driver JOB COMMAND...\n";
    return 2;
  }
  try {
    const bench::job job = bench::job::parse(argv[1]);
    const std::vector<std::string> command(argv + 2, argv + argc);
    std::signal(SIGPIPE, SIG_IGN);
    if (job.driver_cpu) bench::pin(*job.driver_cpu);
    const auto measure = job.starts > 0    ? bench::measure_starts
                         : job.shards > 0  ? bench::measure_shards
                         : job.batches > 0 ? bench::play_batches
                                           : bench::measure_batches;
    const auto result = measure(job, command);
    std::cout << result.dump() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "side_by_side_driver: " << error.what() << "\n";
    return 1;
  }
}
