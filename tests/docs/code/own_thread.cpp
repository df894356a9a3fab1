// SPDX-License-Identifier: Apache-2.0
// The thread of docs/processing.md.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <kclxx/kclxx.hpp>

using namespace std::chrono_literals;

void write_to_disk(const kclxx::record_batch& batch);
int slow_main();

class slow_writer : public kclxx::record_processor {
 public:
  explicit slow_writer(const kclxx::shard_context& shard)
      : shard_(shard), worker_([this](const std::stop_token& stop) { work(stop); }) {}

  [[nodiscard]] kclxx::checkpoint_mode mode() const override {
    return kclxx::checkpoint_mode::manual;
  }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    std::unique_lock lock(mutex_);
    if (!checkpointer_) checkpointer_ = checkpointer;
    // Four batches at most wait to be written: while this waits, the daemon waits.
    changed_.wait(lock, shard_.stop_token(), [this] { return waiting_.size() < 4; });
    if (!batch.empty()) waiting_.push_back(std::move(batch));
    changed_.notify_all();
  }

 private:
  void work(const std::stop_token& stop) try {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
      const kclxx::record_batch batch = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.notify_all();
      lock.unlock();
      write_to_disk(batch);
      checkpointer_->async_checkpoint(batch);  // this batch and all before it
      lock.lock();
    }
  } catch (...) {
    shard_.fail(std::current_exception());  // as if a callback had thrown it
  }

  const kclxx::shard_context& shard_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<kclxx::record_batch> waiting_;
  std::optional<kclxx::checkpointer> checkpointer_;
  std::jthread worker_;  // last: it ends before what it uses
};

int slow_main() { return kclxx::run<slow_writer>(); }
