// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

/// A fixed number of connections, which the callbacks of all shards take turns with.
///
/// Thread safety: all functions from any thread. Lifetime: longer than what take() returns.
template <class Connection>
class connection_pool {
 public:
  explicit connection_pool(std::vector<std::unique_ptr<Connection>> connections)
      : free_(std::move(connections)) {}

  /// Gives the connection back.
  class giver_back {
   public:
    explicit giver_back(connection_pool* pool = nullptr) : pool_(pool) {}
    void operator()(Connection* connection) const {
      pool_->give_back(std::unique_ptr<Connection>(connection));
    }

   private:
    connection_pool* pool_;
  };
  using taken = std::unique_ptr<Connection, giver_back>;

  /// Blocking: until a connection is free.
  taken take() {
    std::unique_lock lock(mutex_);
    is_free_.wait(lock, [this] { return !free_.empty(); });
    taken one(free_.back().release(), giver_back(this));
    free_.pop_back();
    return one;
  }

 private:
  void give_back(std::unique_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
    is_free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable is_free_;
  std::vector<std::unique_ptr<Connection>> free_;
};
