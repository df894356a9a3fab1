// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx::tool {

/// The exit statuses of the tool. `kclxx capture` passes on its child's status instead, once that
/// runs.
enum class exit_status : int {
  ok = 0,
  breach = 1,        ///< the child broke the protocol, its answers differ, or a check found errors
  usage = 2,         ///< the command line cannot be understood
  child_failed = 3,  ///< the child ended when it should not have
  bad_transcript = 4,  ///< a transcript is damaged, not one, or lacks what an option needs
  setup_failed = 5,    ///< a file or the child cannot be opened, made or started
};

}  // namespace kclxx::tool
