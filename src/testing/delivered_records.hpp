// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::testing {

/// The records that the shard has so far: numbers them, writes them as the daemon does, and keeps
/// them for a successor.
class delivered_records {
 public:
  using milliseconds = std::chrono::milliseconds;

  struct batch {
    std::string line;
    std::optional<sequence_position> largest{};  ///< std::nullopt when it is empty
  };

  /// Adds a batch. An empty sequence number is given one above the highest so far. What was
  /// delivered before comes again as it was.
  /// Errors: std::invalid_argument.
  batch add(std::span<const record::fields> records,
            std::optional<milliseconds> millis_behind_latest);
  /// With the parts of records that a test seldom cares for filled in.
  batch add_payloads(std::span<const std::string> payloads, milliseconds arrival,
                     std::optional<milliseconds> millis_behind_latest);
  /// The same as user records of one aggregated record.
  batch add_aggregate(std::span<const std::string> payloads, milliseconds arrival,
                      std::optional<milliseconds> millis_behind_latest);

  /// The shard is read from here on: numbers continue above it.
  void start_after(const sequence_position& position);
  /// All records after the position again, in batches as large as the daemon's largest.
  [[nodiscard]] std::vector<batch> after(const sequence_position& position) const;

 private:
  struct stored {
    std::optional<std::string> data{};
    std::optional<std::string> partition_key{};
    std::optional<milliseconds> arrival{};
    bool operator==(const stored&) const = default;
  };
  [[nodiscard]] static stored stored_of(const record::fields& fields);
  /// Errors: std::invalid_argument.
  void require_possible(const sequence_position& position,
                        const std::optional<sequence_position>& before,
                        const record::fields& fields) const;

  std::map<sequence_position, stored> records_;
  std::optional<sequence_position> highest_;
};

}  // namespace kclxx::testing
