// SPDX-License-Identifier: Apache-2.0
// A program with a nlohmann_json of its own, which throws where the library's does not.
#include <cstdio>

#include <nlohmann/json.hpp>

#include <kclxx/kclxx.hpp>

int main() {
  return kclxx::run([](kclxx::record_batch batch) {
    for (const kclxx::record& record : batch) {
      const auto value = nlohmann::json::parse(record.data(), nullptr, false);
      std::printf("%s JSON, key of %zu bytes\n", value.is_discarded() ? "no" : "is",
                  record.partition_key().value_or("").size());
    }
  });
}
