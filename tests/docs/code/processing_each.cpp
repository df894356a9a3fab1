// SPDX-License-Identifier: Apache-2.0
// The first program of docs/processing.md, and the README's.
#include <string_view>

#include <kclxx/kclxx.hpp>

void store(std::string_view data);

int main() {
  return kclxx::run(kclxx::each([](const kclxx::record& event) { store(event.data()); },
                                {.bad_record = kclxx::bad_record::park}));
}
