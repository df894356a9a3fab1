// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/archive/commit_log.hpp>
#include <kclxx/archive/store.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::archive {

/// A parking lot in a store. Each record is an object that its position names,
/// `_kclxx_parked/APPLICATION/STREAM/SHARD/SEQUENCE.SUB.jsonl`, with a line as parking_file writes
/// it: a record that is parked again, after a crash, is one object all the same.
class parking_lot final : public kclxx::parking_lot {
 public:
  /// Nothing is read or written yet.
  explicit parking_lot(std::shared_ptr<store> store) : store_(std::move(store)) {}

  /// Reads from the store, so that a store that does not answer is known before the first record,
  /// and removes what processes have left that were killed while they parked.
  /// Errors: std::system_error.
  void prepare(const shard_context& shard) override {
    std::vector<std::string> names = store_->list(folder(shard));
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".part"); });
    store_->remove(names);
  }
  /// Errors: std::system_error.
  /// Blocking: as the store, once for each record.
  void park(const shard_context& shard, std::span<const failed_record> failed) override {
    for (const failed_record& parked : failed) {
      store_->put_if_absent({folder(shard) + '/' + std::string(parked.record.sequence_number()) +
                                 '.' + std::to_string(parked.record.sub_sequence_number()) +
                                 ".jsonl",
                             parked_line(shard, parked)});
    }
  }

 private:
  static std::string folder(const shard_context& shard) {
    std::string folder = folder_of(shard);
    return folder.insert(folder.find('/'), "_parked");
  }

  std::shared_ptr<store> store_;
};

}  // namespace kclxx::archive
