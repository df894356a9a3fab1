// SPDX-License-Identifier: Apache-2.0
// Writes each record to Redis with coroutines: redis_writer [HOST [PORT]]. A record becomes a field
// of the hash with the name of its partition key, named after its position: a record that is
// delivered again is written again, to the same place.
#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/kclxx.hpp>

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;

namespace {

/// A command in Redis' protocol: an array of strings.
template <std::size_t Size>
std::string command(const std::array<std::string_view, Size>& words) {
  std::string text = "*" + std::to_string(Size) + "\r\n";
  for (const std::string_view word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n";
    text.append(word).append("\r\n");
  }
  return text;
}

/// Connections of one shard: as many as commands run at the same time. All run on one thread.
class redis {
 public:
  redis(asio::any_io_executor executor, std::string host, std::string port)
      : executor_(std::move(executor)), host_(std::move(host)), port_(std::move(port)) {}

  /// A command with an answer of one line. Errors: std::runtime_error, boost::system::system_error.
  asio::awaitable<void> run(std::string command) {
    try {
      tcp::socket connection = co_await take_connection();
      co_await asio::async_write(connection, asio::buffer(command), use_awaitable);
      std::string answer;
      co_await asio::async_read_until(connection, asio::dynamic_buffer(answer), "\r\n",
                                      use_awaitable);
      if (answer.starts_with('-')) throw std::runtime_error("Redis: " + answer);
      idle_.push_back(std::move(connection));
    } catch (...) {
      idle_.clear();  // most likely the server has closed these, too
      throw;
    }
  }

 private:
  asio::awaitable<tcp::socket> take_connection() {
    if (!idle_.empty()) {
      tcp::socket connection = std::move(idle_.back());
      idle_.pop_back();
      co_return connection;
    }
    tcp::resolver resolver(executor_);
    const auto addresses = co_await resolver.async_resolve(host_, port_, use_awaitable);
    tcp::socket connection(executor_);
    co_await asio::async_connect(connection, addresses, use_awaitable);
    connection.set_option(tcp::no_delay(true));
    co_return connection;
  }

  asio::any_io_executor executor_;
  std::string host_;
  std::string port_;
  std::vector<tcp::socket> idle_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string host = argc > 1 ? argv[1] : "localhost";
  const std::string port = argc > 2 ? argv[2] : "6379";
  // Each shard has connections of its own.
  const auto handler = [host, port](const kclxx::shard_context&, asio::any_io_executor executor) {
    return [store = std::make_shared<redis>(std::move(executor), host, port)](
               kclxx::record event) -> asio::awaitable<void> {
      const std::string key(event.partition_key().value_or(""));
      const std::string position = to_string(event.position());
      co_await store->run(command<4>({"HSET", key, position, event.data()}));
    };
  };
  // Redis may be away for as long as it takes: the shards wait for it, and nothing is lost.
  return kclxx::run(kclxx::asio::parallel(handler, {}, {.lanes = 32}));
}
