// SPDX-License-Identifier: Apache-2.0
// The programs of docs/sharing.md.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>

#include <kclxx/kclxx.hpp>
#include <kclxx/run.hpp>

namespace one_process {

int main();

std::map<std::string, std::string> load_names();

/// Of a database; for one thread at a time.
struct client {
  void insert(const std::string& rows);
};

class database {
 public:
  void add(const std::string& rows) {
    const std::lock_guard lock(mutex_);  // callbacks of other shards call this, too
    connection_.insert(rows);
  }

 private:
  std::mutex mutex_;
  client connection_;
};

int main() {
  // It does not change once it is loaded, so all shards read it without a lock.
  const auto names = std::make_shared<const std::map<std::string, std::string>>(load_names());
  const auto store = std::make_shared<database>();
  return kclxx::run(kclxx::batches([names, store](const kclxx::record_batch& events) {
    std::string rows;
    for (const kclxx::record& event : events) {
      const auto found = names->find(std::string(event.partition_key().value_or("")));
      rows += found == names->end() ? "unknown" : found->second;
      rows.append(" ").append(event.data()).append("\n");
    }
    store->add(rows);
  }));
}

}  // namespace one_process

void count(const kclxx::record& event);

void serve_shard(int connection) {
  const kclxx::exit_status status = kclxx::serve(
      {.input = connection, .output = connection, .stream_name = "events"}, kclxx::each(count));
  ::close(connection);
  if (status != kclxx::exit_status::ok) ::_exit(static_cast<int>(status));
}
