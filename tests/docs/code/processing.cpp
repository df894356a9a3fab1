// SPDX-License-Identifier: Apache-2.0
// The code of docs/processing.md, each program in a namespace of its own.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
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
