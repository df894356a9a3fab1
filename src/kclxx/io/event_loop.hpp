// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>

namespace kclxx::io {

/// A loop that reactors may share, run by a single thread. It has a header of its own, so that
/// Boost's code is compiled into the files that run a loop, and not into those that have a reactor
/// (package.other_boost).
struct event_loop {
  boost::asio::io_context context{1};
};

}  // namespace kclxx::io
