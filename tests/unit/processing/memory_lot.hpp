// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <kclxx/processing/parking_lot.hpp>
#include <kclxx/record.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::test {

/// Keeps what is parked; refuses the first `refusals` times.
struct memory_lot final : parking_lot {
  struct parked {
    std::string data;
    int attempts;
    std::string first_error;
    std::string last_error;
    bool operator==(const parked&) const = default;
  };

  void park(const shard_context&, const failed_record& failed) override {
    ++calls;
    if (refusals > 0) {
      --refusals;
      throw std::runtime_error("the lot is full");
    }
    all.push_back({std::string(failed.record.data()), failed.attempts, failed.first_error,
                   failed.last_error});
  }
  [[nodiscard]] std::vector<std::string> data() const {
    std::vector<std::string> result;
    for (const parked& one : all) result.push_back(one.data);
    return result;
  }

  int refusals = 0;
  int calls = 0;
  std::vector<parked> all{};
};

}  // namespace kclxx::test
