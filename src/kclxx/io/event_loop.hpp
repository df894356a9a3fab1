// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>

namespace kclxx::io {

/// What several reactors may share. One thread runs it.
struct event_loop {
  boost::asio::io_context context{1};
};

}  // namespace kclxx::io
