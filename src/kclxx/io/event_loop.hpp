// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>

namespace kclxx::io {

/// What several reactors may share. One thread runs it. A header of its own, so that Boost's code
/// is compiled into what runs a loop, and not into what has a reactor (package.other_boost).
struct event_loop {
  boost::asio::io_context context{1};
};

}  // namespace kclxx::io
