// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

namespace kclxx {

/// Which records keep others waiting while they are being processed or tried again.
enum class order {
  /// Those of one key are processed one after the other, in the shard's order; a record that fails
  /// keeps the later ones of its key waiting.
  key,
  /// No record waits for another one.
  none,
};

}  // namespace kclxx
