// SPDX-License-Identifier: Apache-2.0
#include "simulation/store.hpp"

#include <algorithm>
#include <string>

#include "simulation/violation.hpp"

namespace kclxx::simulation {

std::optional<store::transaction> store::begin(random_source& random) {
  if (how_.locks && holder_ && !random.chance(20)) return std::nullopt;
  holder_ = ++begun_;
  return transaction{begun_, position_};
}

bool store::commit(const transaction& what, std::size_t first, std::size_t end) {
  if (how_.locks && holder_ != what.number) return false;
  holder_.reset();
  for (std::size_t i = first; i < end; ++i) {
    const std::string record = "effect: that of record " + std::to_string(i);
    if (++effects_[i] > 1) throw violation(record + " came twice");
    if (i != position_++) throw violation(record + " came out of order");
  }
  return true;
}

void store::check_finished() const {
  if (std::find(effects_.begin(), effects_.end(), 0) != effects_.end()) {
    throw violation("effect: that of a record never came");
  }
}

}  // namespace kclxx::simulation
