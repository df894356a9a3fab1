// SPDX-License-Identifier: Apache-2.0
#include "simulation/store.hpp"

#include <algorithm>
#include <string>

#include <kclxx/error.hpp>

#include "simulation/world.hpp"

namespace kclxx::simulation {

void fenced_store::commit(const transaction& what, std::size_t end) {
  if (what.epoch != epoch_) {
    throw fenced_error("epoch " + std::to_string(epoch_) + ", not " + std::to_string(what.epoch));
  }
  for (std::size_t i = what.first; i < end; ++i) {
    const std::string record = "effect: that of record " + std::to_string(i);
    if (++effects_[i] > 1) throw violation(record + " came twice");
    if (i != position_++) throw violation(record + " came out of order");
  }
}

void fenced_store::check_finished() const {
  if (std::find(effects_.begin(), effects_.end(), 0) != effects_.end()) {
    throw violation("effect: that of a record never came");
  }
}

}  // namespace kclxx::simulation
