// SPDX-License-Identifier: Apache-2.0
// The code of docs/processing.md about batches.
#include <chrono>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>

void upload(const kclxx::record_batch& batch);
bool put(const kclxx::record& event);
int gathering();
void put_all(const kclxx::record_batch& batch);

int gathering() {
  using namespace std::chrono_literals;
  return kclxx::run(kclxx::batches([](const kclxx::record_batch& batch) { upload(batch); },
                                   {.bad_record = kclxx::bad_record::park},
                                   {.max_records = 5'000, .linger = 2s}));
}

// clang-format off
void put_all(const kclxx::record_batch& batch) {
  std::vector<kclxx::batch_failure::failed> failed;
  for (const kclxx::record& event : batch) {
    if (!put(event)) failed.push_back({event.position()});
  }
  if (!failed.empty()) throw kclxx::batch_failure(std::move(failed));
}
