// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kclxx::tool {

/// One command of `kclxx local`, which the program for Node.js then does.
struct local_call {
  enum class need {
    nothing,     ///< it looks at processes and files alone
    what_runs,   ///< it talks to it
    everything,  ///< it starts it
  };
  std::string command;
  need needs = need::nothing;
  bool changes_state = false;  ///< of the directory: no other one like it runs at the same time
  bool is_offline = false;
  std::string directory;  ///< empty: the user's
  bool takes_input = false;
  std::string input;  ///< becomes its stdin; "-": stdin as it is; empty: none
  std::vector<std::pair<std::string, std::string>> options;
};

/// Brings all that `kclxx local` needs into the cache, and gives the folders.
/// Errors: command_error.
std::vector<std::string> fetch_local(bool is_offline);

/// The program for Node.js, and its arguments. Stdin is what the call needs then.
/// Errors: command_error.
std::vector<std::string> node_command(const local_call& call);

/// Becomes Node.js. Does not return.
/// Errors: command_error.
[[noreturn]] void run_local(const local_call& call);

/// Has Node.js read the lease table, once or until it is ended, and prints it. Returns Node's exit
/// status.
/// Errors: command_error, start_error, lease_table::bad_scan.
int show_local_leases(const local_call& call);

}  // namespace kclxx::tool
