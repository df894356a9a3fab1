// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "tool/command_error.hpp"
#include "tool/lease_table/lease_text.hpp"
#include "tool/lease_table/observation.hpp"
#include "tool/line_splitter.hpp"
#include "tool/local/local_launch.hpp"
#include "tool/process/child_process.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string option_of(const local_call& call, std::string_view name) {
  const auto found = std::find_if(call.options.begin(), call.options.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == call.options.end() ? "" : found->second;
}

std::string clock_text(std::time_t now) {
  std::tm local{};
  std::array<char, 16> text{};
  ::localtime_r(&now, &local);
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &local)};
}

void print(const lease_table::picture& all, const local_call& call, const std::string& stream) {
  if (!option_of(call, "tsv").empty()) {
    std::cout << to_tsv(all) << std::flush;
    return;
  }
  const bool is_redrawn = !option_of(call, "watch").empty() && ::isatty(STDOUT_FILENO) == 1;
  const std::time_t now = std::time(nullptr);
  std::cout << (is_redrawn ? "\x1b[H\x1b[J" : "")
            << printable("application " + option_of(call, "application") + ", stream " + stream)
            << ", at " << clock_text(now) << '\n'
            << to_table(all, now) << std::flush;
}

}  // namespace

int show_local_leases(const local_call& call) {
  child_process node(node_command(call));
  node.input.close();
  lease_table::observation seen(lease_table::renewal_limit);
  const steady_clock::time_point begin = steady_clock::now();
  line_splitter lines;
  for (;;) {
    constexpr std::size_t piece = 65'536;
    const ssize_t size = ::read(node.output.get(), lines.prepare(piece), piece);
    if (size == -1 && errno == EINTR) continue;
    if (size == -1) cannot_set_up("what Node.js prints", "read");
    if (size == 0) break;
    lines.commit(static_cast<std::size_t>(size));
    for (std::string_view line; lines.next(line);) {
      lease_table::scan table = lease_table::parse_scan(line);
      const std::string stream = table.stream;
      seen.add(std::move(table),
               std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin));
      print(seen.look(), call, stream);
      if (!std::cout) return 0;  // nobody reads it any more; the message follows
    }
  }
  const child_exit end = node.wait();
  return end.signal == 0 ? end.status : 128 + end.signal;
}

}  // namespace kclxx::tool
