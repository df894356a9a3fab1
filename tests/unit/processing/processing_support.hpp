// SPDX-License-Identifier: Apache-2.0
// What the tests of all forms of processing use.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service_wrapper.hpp>  // IWYU pragma: export
#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

namespace kclxx::test {

using strings = std::vector<std::string>;

/// Checkpoints with every batch.
inline run_options prompt() {
  run_options options;
  options.checkpoint_interval = std::chrono::milliseconds(0);
  return options;
}

/// Delivers them, as one aggregated record or as several. Returns the position of the last.
inline sequence_position deliver(testing::daemon& to, const strings& payloads, bool is_aggregate) {
  if (is_aggregate) {
    to.deliver_aggregate(payloads);
    return sequence_position("1", payloads.size() - 1);
  }
  to.deliver(payloads);
  return sequence_position(std::to_string(payloads.size()));
}

inline std::size_t count_logged(const testing::daemon& from, const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      from.log().begin(), from.log().end(),
      [&](const log_entry& entry) { return entry.text.find(text) != std::string::npos; }));
}

inline bool logged(const testing::daemon& from, const std::string& text) {
  return count_logged(from, text) > 0;
}

/// Keeps what is parked; refuses the first `refusals` times.
struct memory_lot final : parking_lot {
  struct parked {
    std::string data;
    int attempts;
    std::string first_error;
    std::string last_error;
    bool operator==(const parked&) const = default;
  };

  void park(const shard_context&, const failed_record& failed) override {
    if (refusals > 0) {
      --refusals;
      throw std::runtime_error("the lot is full");
    }
    all.push_back({std::string(failed.record.data()), failed.attempts, failed.first_error,
                   failed.last_error});
  }
  [[nodiscard]] strings data() const {
    strings result;
    for (const parked& one : all) result.push_back(one.data);
    return result;
  }

  int refusals = 0;
  std::vector<parked> all{};
};

/// Makes processors of one shard whose context has its service in a Wrapper, a
/// shard_service_wrapper. It outlives them.
template <class Wrapper>
class wrapped {
 public:
  explicit wrapped(processor_factory inner) : inner_(std::move(inner)) {}

  [[nodiscard]] processor_factory factory() {
    return {[this](const shard_context& shard) {
              auto fields = shard.to_fields();
              service_ = std::make_shared<Wrapper>(fields.service);
              fields.service = service_;
              context_.emplace(fields);
              return inner_(*context_);
            },
            inner_.mode()};
  }
  [[nodiscard]] const Wrapper& service() const { return *service_; }

 private:
  processor_factory inner_;
  std::shared_ptr<Wrapper> service_;
  std::optional<shard_context> context_;
};

}  // namespace kclxx::test
