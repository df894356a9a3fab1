// SPDX-License-Identifier: Apache-2.0
// What the programs of docs/moving.md become.
#include <string>
#include <string_view>

#include <kclxx/kclxx.hpp>

namespace for_python_and_node {

int main();

void store(std::string_view data);

int main() {
  return kclxx::run(kclxx::each([](const kclxx::record& event) { store(event.data()); }));
}

}  // namespace for_python_and_node

namespace for_java_and_go {

int main();

class shard_totals {
 public:
  explicit shard_totals(std::string shard);
  void add(std::string_view data);
  void write();
  void forget();
};

class processor : public kclxx::record_processor {
 public:
  explicit processor(const kclxx::shard_context& shard) : totals_(shard.shard_id()) {}

  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    for (const kclxx::record& event : batch) totals_.add(event.data());
    totals_.write();
  }

  void lease_lost() override { totals_.forget(); }

 private:
  shard_totals totals_;
};

int main() { return kclxx::run<processor>(); }

}  // namespace for_java_and_go
