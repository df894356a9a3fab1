// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

namespace kclxx::replay {

struct partial_batch {
  std::string line;
  std::size_t records = 0;
  std::size_t data_bytes = 0;  ///< of the records' data, without base64
};

/// A processRecords line, as the daemon writes it, with those records of `line` that are after
/// `persisted`; std::nullopt when that is all of them. Precondition: `line` is a batch that
/// decodes.
std::optional<partial_batch> batch_after(std::string_view line, const sequence_position& persisted);

}  // namespace kclxx::replay
