// SPDX-License-Identifier: Apache-2.0
// What the Python and the Node program of docs/moving.md become.
#include <string_view>

#include <kclxx/kclxx.hpp>

void store(std::string_view data);

int main() {
  return kclxx::run(kclxx::each([](const kclxx::record& event) { store(event.data()); }));
}
