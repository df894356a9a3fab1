// SPDX-License-Identifier: Apache-2.0
#include "tool/leases/aws_scan.hpp"

#include <array>
#include <cerrno>
#include <iostream>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "tool/command_error.hpp"
#include "tool/process/child_process.hpp"
#include "tool/process/program_search.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

struct outputs {
  std::string out;
  std::string error;
};

/// Both to their ends: what is not read would stop the program.
outputs read_both(const child_process& program) {
  outputs read;
  std::array<pollfd, 2> ends{{{program.output.get(), POLLIN, 0}, {program.error.get(), POLLIN, 0}}};
  while (ends[0].fd != -1 || ends[1].fd != -1) {
    if (::poll(ends.data(), ends.size(), -1) == -1 && errno != EINTR) cannot_set_up("aws", "read");
    for (pollfd& end : ends) {
      if (end.fd == -1 || end.revents == 0) continue;
      std::array<char, 16384> piece{};
      const ssize_t size = ::read(end.fd, piece.data(), piece.size());
      if (size == -1 && errno == EINTR) continue;
      if (size <= 0) {
        end.fd = -1;
      } else {
        (&end == &ends[0] ? read.out : read.error)
            .append(piece.data(), static_cast<std::size_t>(size));
      }
    }
  }
  return read;
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \r\n") + 1);
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

/// Nothing: there is no such table.
std::optional<std::string> run_aws(const std::string& table,
                                   const std::vector<std::string>& options) {
  if (!find_program("aws")) {
    cannot_set_up(
        "aws is not in PATH; on Debian: apt-get install awscli. Or let it run elsewhere: aws "
        "dynamodb scan --output json --table-name TABLE, and give what it prints to kclxx leases "
        "-");
  }
  std::vector<std::string> command{"aws", "dynamodb", "scan", "--table-name",
                                   table, "--output", "json", "--consistent-read"};
  command.insert(command.end(), options.begin(), options.end());
  child_process aws(command, child_process::error_output::piped);
  aws.input.close();
  outputs read = read_both(aws);
  const child_exit end = aws.wait();
  if (end == child_exit{}) return std::move(read.out);
  if (read.error.find("ResourceNotFoundException") != std::string::npos) return std::nullopt;
  cannot_set_up("aws ended with " + to_string(end) + ": " + last_line(read.error));
}

}  // namespace

lease_table::scan scan_with_aws(const std::string& table, const std::vector<std::string>& options) {
  const auto text = run_aws(table, options);
  if (!text) {
    cannot_set_up("there is no table " + table +
                  " where aws looks; its name is applicationName, and the daemon creates it");
  }
  lease_table::scan found = lease_table::parse_scan(*text);
  if (!found.other_rows.empty()) return found;
  const std::string beside = table + "-CoordinatorState";
  try {
    const auto state = run_aws(beside, options);
    if (state) found.add_coordinator_state(*state);
  } catch (const command_error& error) {
    std::cerr << printable(beside + " cannot be read, so the leader is not known: " + error.what())
              << std::endl;
  }
  return found;
}

}  // namespace kclxx::tool
