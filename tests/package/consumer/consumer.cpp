// SPDX-License-Identifier: Apache-2.0
// The shortest program, in the form that takes a function.
#include <cstdio>

#include <kclxx/kclxx.hpp>

int main() {
  return kclxx::run([](kclxx::record_batch batch) { std::printf("%zu records\n", batch.size()); });
}
