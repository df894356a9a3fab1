// SPDX-License-Identifier: Apache-2.0
// What docs/processing.md, failures.md and sharing.md show, each in a namespace of its own.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/json.hpp>
#include <kclxx/kclxx.hpp>

// The README has this one, too.
namespace each_form {

int main();

void store(std::string_view data);

int main() {
  return kclxx::run(kclxx::each([](const kclxx::record& event) { store(event.data()); },
                                {.bad_record = kclxx::bad_record::park}));
}

}  // namespace each_form

namespace batches_form {

void upload(const kclxx::record_batch& batch);
bool put(const kclxx::record& event);
int gathering();
void put_all(const kclxx::record_batch& batch);

int gathering() {
  using namespace std::chrono_literals;
  return kclxx::run(kclxx::batches([](const kclxx::record_batch& batch) { upload(batch); },
                                   {.bad_record = kclxx::bad_record::park},
                                   {.max_records = 5'000, .linger = 2s}));
}

// clang-format off
void put_all(const kclxx::record_batch& batch) {
  std::vector<kclxx::batch_failure::failed> failed;
  for (const kclxx::record& event : batch) {
    if (!put(event)) failed.push_back({event.position()});
  }
  if (!failed.empty()) throw kclxx::batch_failure(std::move(failed));
}
// clang-format on

}  // namespace batches_form

namespace parallel_form {

void store(std::string_view data);
int lanes();

int lanes() {
  return kclxx::run(kclxx::parallel([](const kclxx::record& event) { store(event.data()); },
                                    {.bad_record = kclxx::bad_record::park}, {.lanes = 16}));
}

/// A client library that reports the end on a thread of its own, with functions that need not be
/// copyable.
class client_error {
 public:
  explicit operator bool() const;
  [[nodiscard]] std::string message() const;
};

class client_library {
 public:
  template <class Handler>
  void send(std::string_view data, Handler on_sent) {
    post(data, std::make_shared<Handler>(std::move(on_sent)));
  }

 private:
  template <class Handler>
  void post(std::string_view data, std::shared_ptr<Handler> on_sent) {
    post_function(data, [on_sent](const client_error& error) { (*on_sent)(error); });
  }
  void post_function(std::string_view data, std::function<void(const client_error&)> on_sent);
};

kclxx::processor_factory with_completions(client_library& client);

kclxx::processor_factory with_completions(client_library& client) {
  return
      // clang-format off
kclxx::parallel([&client](kclxx::completion done) {
  const std::string_view data = done.record().data();
  client.send(data, [done = std::move(done)](const client_error& error) mutable {
    error ? done.fail(error.message()) : done.complete();
  });
}, {}, {.lanes = 200});
  // clang-format on
}

}  // namespace parallel_form

namespace asio_form {

int main();

boost::asio::awaitable<void> handle(kclxx::record event, const kclxx::shard_context& shard);

int main() { return kclxx::run(kclxx::asio::parallel(handle, {}, {.lanes = 64})); }

}  // namespace asio_form

namespace json_form {

int main();

struct page_view {
  std::string page;
  std::uint64_t at = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(page_view, page, at)

void count(const page_view& view);

int main() {
  return kclxx::run(
      kclxx::each(kclxx::json<page_view>(count), {.bad_record = kclxx::bad_record::park}));
}

struct purchase {
  std::uint32_t count = 0;
};
void from_json(const nlohmann::json& value, purchase& result);

void from_json(const nlohmann::json& value, purchase& result) {
  const auto& count = value.at("count");
  if (!count.is_number_unsigned() || count > UINT32_MAX) throw std::out_of_range("count");
  count.get_to(result.count);
}

}  // namespace json_form

namespace own_thread {

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

}  // namespace own_thread

namespace outage {

struct broken_connection : std::runtime_error {
  using std::runtime_error::runtime_error;
};

kclxx::failure_policy policy_of_a_database();

kclxx::failure_policy policy_of_a_database() {
  kclxx::failure_policy policy;
  policy.is_outage = [](const std::exception& error) {
    return dynamic_cast<const broken_connection*>(&error) != nullptr;
  };
  return policy;
}

}  // namespace outage

namespace shared_client {

int main();

/// A client library's connection, for one thread at a time.
struct client {
  void insert(std::string_view row);
};

class database {
 public:
  void add(std::string_view row) {
    const std::lock_guard lock(mutex_);  // callbacks of other shards call this, too
    connection_.insert(row);
  }

 private:
  std::mutex mutex_;
  client connection_;
};

int main() {
  const auto store = std::make_shared<database>();
  return kclxx::run(kclxx::each([store](const kclxx::record& event) { store->add(event.data()); }));
}

}  // namespace shared_client
