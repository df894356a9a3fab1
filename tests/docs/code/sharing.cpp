// SPDX-License-Identifier: Apache-2.0
// The program of docs/sharing.md.
#include <memory>
#include <mutex>
#include <string_view>

#include <kclxx/kclxx.hpp>

/// A client library's connection, for one thread at a time.
struct client {
  void insert(std::string_view row);
};

class database {
 public:
  void add(std::string_view row) {
    const std::lock_guard lock(mutex_);  // callbacks of other shards call this, too
    connection_.insert(row);
  }

 private:
  std::mutex mutex_;
  client connection_;
};

int main() {
  const auto store = std::make_shared<database>();
  return kclxx::run(kclxx::each([store](const kclxx::record& event) { store->add(event.data()); }));
}
