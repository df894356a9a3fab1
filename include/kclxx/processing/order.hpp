// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

namespace kclxx {

/// Which records keep others waiting while they are being processed or tried again.
enum class order {
  /// A record that fails keeps the later ones of its key waiting. `parallel` also processes the
  /// records of a key one after the other, in the shard's order.
  key,
  /// No record waits for another one.
  none,
};

}  // namespace kclxx
