// SPDX-License-Identifier: Apache-2.0
// The code of docs/processing.md that is about many records at once.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <kclxx/kclxx.hpp>

void store(std::string_view data);
int lanes();

int lanes() {
  return kclxx::run(kclxx::parallel([](const kclxx::record& event) { store(event.data()); },
                                    {.bad_record = kclxx::bad_record::park}, {.lanes = 16}));
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
}, {}, {.lanes = 200});
  // clang-format on
}
