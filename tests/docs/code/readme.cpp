// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <kclxx/kclxx.hpp>

int main() {
  return kclxx::run(kclxx::each(
      [](const kclxx::record& event) {
        if (event.data().empty()) throw kclxx::permanent_error("no data");
        std::cout << event.partition_key().value_or("-") << ": " << event.data() << "\n";
      },
      {.bad_record = kclxx::bad_record::park}));
}
