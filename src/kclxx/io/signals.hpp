// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace kclxx::io {

/// Blocks all signals but a thread's own faults in the calling thread while it lives, so that a
/// thread started meanwhile inherits that and no handler of the user's program runs on it.
class signal_block {
 public:
  signal_block();
  ~signal_block();
  signal_block(const signal_block&) = delete;
  signal_block& operator=(const signal_block&) = delete;

 private:
  sigset_t before_;
};

}  // namespace kclxx::io
