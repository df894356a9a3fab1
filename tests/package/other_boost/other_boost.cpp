// SPDX-License-Identifier: Apache-2.0
// A program with a Boost.Asio of its own, of another version than the library was built with.
#include <chrono>
#include <cstdio>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>

#include <kclxx/kclxx.hpp>

int main() {
  return kclxx::run([](kclxx::record_batch batch) {
    boost::asio::io_context context;
    boost::asio::steady_timer timer(context, std::chrono::milliseconds(1));
    int steps = 0;
    boost::asio::post(context, [&] { ++steps; });
    timer.async_wait([&](boost::system::error_code) { ++steps; });
    context.run();
    std::printf("Boost %d: %d steps, %zu records\n", BOOST_VERSION, steps, batch.size());
  });
}
