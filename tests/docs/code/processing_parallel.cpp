// SPDX-License-Identifier: Apache-2.0
// The code of docs/processing.md that is about many records at once.
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <kclxx/kclxx.hpp>

void store(std::string_view data);
void handler(const kclxx::record& event);
int lanes();
int monitored();

int lanes() {
  return kclxx::run(kclxx::parallel([](const kclxx::record& event) { store(event.data()); },
                                    {.attempts = 5, .exhausted = kclxx::exhausted::park},
                                    {.lanes = 16}));
}

int monitored() {
  kclxx::window_monitor monitor;
  std::jthread watch([monitor](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      for (const kclxx::window_state& shard : monitor.states()) {
        if (!shard.oldest || shard.oldest->age < std::chrono::minutes(1)) continue;
        std::clog << shard.shard_id << ": " << shard.records << " records wait, the oldest is "
                  << shard.oldest->position << " of key " << shard.oldest->partition_key
                  << " in attempt " << shard.oldest->attempt << "\n";
      }
    }
  });
  return kclxx::run(kclxx::parallel(handler, {}, {.monitor = monitor}));
}

/// A client library that reports the end on a thread of its own, with functions that need not be
/// copyable.
class client_error {
 public:
  explicit operator bool() const;
  [[nodiscard]] std::string message() const;
};

class client_library {
 public:
  template <class Handler>
  void send(std::string_view data, Handler on_sent) {
    post(data, std::make_shared<Handler>(std::move(on_sent)));
  }

 private:
  template <class Handler>
  void post(std::string_view data, std::shared_ptr<Handler> on_sent) {
    post_function(data, [on_sent](const client_error& error) { (*on_sent)(error); });
  }
  void post_function(std::string_view data, std::function<void(const client_error&)> on_sent);
};

kclxx::processor_factory with_completions(client_library& client);

kclxx::processor_factory with_completions(client_library& client) {
  return
      // clang-format off
kclxx::parallel([&client](kclxx::completion done) {
  const std::string_view data = done.record().data();
  client.send(data, [done = std::move(done)](const client_error& error) mutable {
    error ? done.fail(error.message()) : done.complete();
  });
}, {.attempts = 5}, {.lanes = 200});
  // clang-format on
}
