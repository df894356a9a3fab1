// SPDX-License-Identifier: Apache-2.0
// What the tests of all forms of processing use.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/run_options.hpp"  // IWYU pragma: export

namespace kclxx::test {

using strings = std::vector<std::string>;

/// A batch of (key, data); deliver_records gives the sequence numbers 1, 2, ...
inline void deliver(testing::worker& to,
                    const std::vector<std::pair<std::string, std::string>>& records) {
  std::vector<record::fields> fields;
  fields.reserve(records.size());
  for (const auto& [key, data] : records) fields.push_back({.data = data, .partition_key = key});
  to.deliver_records(fields);
}

inline std::size_t count_logged(const testing::worker& from, const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      from.log().begin(), from.log().end(),
      [&](const log_entry& entry) { return entry.text.find(text) != std::string::npos; }));
}

inline bool logged(const testing::worker& from, const std::string& text) {
  return count_logged(from, text) > 0;
}

/// A daemon whose child has started, with parallel() of this handler, and prompt().
struct parallel_daemon : testing::worker {
  template <class Handler>
  explicit parallel_daemon(Handler handler, failure_policy policy = {},
                           parallel_options options = {},
                           std::shared_ptr<observer> watching = nullptr)
      : testing::worker(parallel(std::move(handler), std::move(policy), std::move(options)),
                        prompt(std::move(watching))) {
    initialize();
  }
};

/// Keeps what is parked; refuses the first `refusals` times.
struct memory_lot final : parking_lot {
  struct parked {
    std::string data;
    int attempts;
    std::string first_error;
    std::string last_error;
    bool operator==(const parked&) const = default;
  };

  void park(const shard_context&, std::span<const failed_record> failed) override {
    if (refusals > 0) {
      --refusals;
      throw std::runtime_error("the lot is full");
    }
    ++calls;
    for (const failed_record& bad : failed) {
      all.push_back(
          {std::string(bad.record.data()), bad.attempts, bad.first_error, bad.last_error});
    }
  }
  [[nodiscard]] strings data() const {
    strings result;
    for (const parked& entry : all) result.push_back(entry.data);
    return result;
  }

  int refusals = 0;
  int calls = 0;  // that parked
  std::vector<parked> all{};
};

/// A policy with this lot.
inline failure_policy parking(const std::shared_ptr<parking_lot>& lot, int max_attempts,
                              std::optional<circuit_breaker> breaker = circuit_breaker{}) {
  return {
      .max_attempts = max_attempts, .bad_record = bad_record::park, .lot = lot, .breaker = breaker};
}

inline strings payloads_of(const record_batch& batch) {
  strings payloads;
  for (const record& event : batch) payloads.emplace_back(event.data());
  return payloads;
}

/// Keeps the events that tests of processing look at.
struct seen_events final : observer {
  void on_event(const event_source&, const shard_event& event) override {
    keep(attempts, event);
    keep(windows, event);
    keep(circuits, event);
    keep(stuck, event);
    keep(gaps, event);
  }
  template <class Event>
  static void keep(std::vector<Event>& seen, const shard_event& event) {
    if (const auto* found = std::get_if<Event>(&event)) seen.push_back(*found);
  }
  std::vector<record_attempted> attempts{};
  std::vector<window_changed> windows{};
  std::vector<circuit_changed> circuits{};
  std::vector<handlers_stuck> stuck{};
  std::vector<gap_suspected> gaps{};
};

enum class form {
  each,
  batches,
  batches_with_position,
  batches_with_names,
  parallel,
  completions,
};

/// The form, of a function that processes one record.
inline processor_factory make(form which, const record_handler::of_shard& process,
                              const failure_policy& policy = {},
                              const parallel_options& options = {}) {
  switch (which) {
    case form::each:
      return each(process, policy);
    case form::batches:
      return batches(
          [process](const record_batch& batch, const shard_context& shard) {
            for (const record& event : batch) process(event, shard);
          },
          policy);
    case form::batches_with_position:
      return batches(
          [process](const record_batch& batch, const shard_context& shard) {
            for (const record& event : batch) {
              try {
                process(event, shard);
              } catch (...) {
                throw batch_failure(event.position(), std::current_exception());
              }
            }
          },
          policy);
    case form::batches_with_names:
      return batches(
          [process](const record_batch& batch, const shard_context& shard) {
            std::vector<batch_failure::failed> failed;
            for (const record& event : batch) {
              try {
                process(event, shard);
              } catch (const std::runtime_error&) {
                failed.push_back({event.position(), std::current_exception()});
              }
            }
            if (!failed.empty()) throw batch_failure(std::move(failed));
          },
          policy);
    case form::parallel:
      return parallel(record_handler(process), policy, options);
    case form::completions:
      return parallel(
          [process](completion done, const shard_context& shard) {
            process(done.record(), shard);
            done.complete();
          },
          policy, options);
  }
  throw std::logic_error("no such form");
}

}  // namespace kclxx::test
