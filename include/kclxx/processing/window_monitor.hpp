// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/export.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

namespace detail {
class window_registry;
}

/// The progress of a shard that `parallel` processes.
/// Thread safety: a value; distinct objects are independent.
struct window_state {
  /// The oldest record that is not complete: it holds the watermark back.
  struct oldest_record {
    sequence_position position;
    std::string partition_key;
    int attempt;                   ///< the present one or the next, from 1 on
    std::chrono::nanoseconds age;  ///< since it was delivered
    bool is_with_handler;          ///< false while it waits for its turn or a retry
    bool operator==(const oldest_record&) const = default;
  };

  std::string shard_id;
  /// Everything up to here is complete; std::nullopt until the first record is complete.
  std::optional<sequence_position> watermark{};
  /// The newest record that is complete.
  std::optional<sequence_position> highest_complete{};
  /// Records that are delivered and not complete, and their data after decoding base64.
  std::size_t records = 0;
  std::uint64_t bytes = 0;
  /// Size of the window, in records: what a crash can repeat, besides records completed since
  /// the last checkpoint.
  std::size_t window_size = 0;
  /// std::nullopt when all records are complete.
  std::optional<oldest_record> oldest{};
};

/// Reports the progress of the shards of this process: put it into parallel_options::monitor.
///
///     kclxx::window_monitor monitor;
///     std::jthread watch([monitor] { ... monitor.states() ... });
///     return kclxx::run(kclxx::parallel(handler, policy, {.monitor = monitor}));
///
/// A handle: copies see the same shards.
/// Thread safety: all functions may be called from any thread.
/// Lifetime: it may outlive the session, and keeps no shard alive.
class KCLXX_EXPORT window_monitor {
 public:
  /// A monitor of no shard, until it is in the options of `parallel`.
  /// Errors: std::bad_alloc.
  window_monitor();

  /// The state of each shard that is processed now.
  /// Blocking: no; it holds each shard's lock only while it copies the state.
  [[nodiscard]] std::vector<window_state> states() const;

  /// For the library.
  [[nodiscard]] const std::shared_ptr<detail::window_registry>& registry() const noexcept {
    return registry_;
  }

 private:
  std::shared_ptr<detail::window_registry> registry_;
};

}  // namespace kclxx
