// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cxxabi.h>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/testing/worker.hpp>

#include "base/duration.hpp"
#include "base/printable.hpp"
#include "daemon_model/lines.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "testing/virtual_host.hpp"
#include "testing/virtual_threads.hpp"

namespace kclxx::testing {

using protocol::action_kind;

namespace {

constexpr std::size_t longest_note = 240;

std::string name_of(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  return name ? name.get() : type.name();
}

std::optional<std::int64_t> count(const std::optional<std::chrono::milliseconds>& time) {
  if (!time) return std::nullopt;
  return time->count();
}

std::string one_above(const std::optional<sequence_position>& highest) {
  std::string digits = highest ? highest->sequence_number() : "0";
  const auto last = std::find_if(digits.rbegin(), digits.rend(), [](char c) { return c != '9'; });
  std::fill(digits.rbegin(), last, '0');
  if (last == digits.rend()) {
    digits.insert(digits.begin(), '1');
  } else {
    ++*last;
  }
  return digits;
}

/// The position of a record with these fields. Errors: std::invalid_argument.
sequence_position place(const record::fields& fields, const std::string& next_number) {
  if (fields.sequence_number.empty() && fields.sub_sequence_number != 0) {
    throw std::invalid_argument("deliver_records: sub_sequence_number " +
                                std::to_string(fields.sub_sequence_number) +
                                " needs a sequence_number: it tells the user records of one apart");
  }
  if (fields.sub_sequence_number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    throw std::invalid_argument("deliver_records: sub_sequence_number " +
                                std::to_string(fields.sub_sequence_number) +
                                " is more than the daemon's 63 bits hold");
  }
  const std::string_view number =
      fields.sequence_number.empty() ? std::string_view(next_number) : fields.sequence_number;
  const auto position = sequence_position::parse(number, fields.sub_sequence_number);
  if (!position || !position->is_number()) {
    throw std::invalid_argument("deliver_records: the sequence_number '" + std::string(number) +
                                "' is not a number of 1 to 129 digits");
  }
  return *position;
}

}  // namespace

/// The records that the shard has: numbers them, writes them as the daemon does, and keeps them for
/// a successor.
class delivered_records {
 public:
  using milliseconds = std::chrono::milliseconds;

  struct batch {
    std::string line;
    std::optional<sequence_position> largest{};  ///< std::nullopt when it is empty
  };

  /// Adds a batch. A record with an empty sequence number gets the number after the highest so far.
  /// A record that was delivered before is repeated with its fields.
  /// Errors: std::invalid_argument.
  batch add(std::span<const record::fields> records,
            std::optional<milliseconds> millis_behind_latest) {
    std::vector<sequence_position> positions;
    auto highest = highest_;
    for (const record::fields& fields : records) {
      const auto before = positions.empty() ? std::nullopt : std::optional(positions.back());
      positions.push_back(place(fields, one_above(highest)));
      require_possible(positions.back(), before, fields);
      highest = std::max(highest, std::optional(positions.back()));
    }
    highest_ = highest;  // no record was refused
    std::vector<record> views;
    std::deque<std::string> numbers;
    batch result;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const sequence_position& position = positions[i];
      const auto& kept = records_.try_emplace(position, stored_of(records[i])).first->second;
      views.emplace_back(record::fields{kept.data, kept.partition_key,
                                        numbers.emplace_back(position.sequence_number()),
                                        position.sub_sequence_number(), kept.arrival});
      result.largest = position;
    }
    result.line = daemon_model::process_records_line(views, count(millis_behind_latest));
    return result;
  }

  /// Adds a batch of payloads, and fills in the further fields. `are_aggregated`: they are the user
  /// records of a single aggregated record.
  batch add_payloads(std::span<const std::string> payloads, bool are_aggregated,
                     milliseconds arrival, std::optional<milliseconds> millis_behind_latest) {
    const std::string number = are_aggregated ? one_above(highest_) : std::string();
    std::vector<record::fields> records;
    for (const std::string& data : payloads) {
      records.push_back({.data = data,
                         .partition_key = "key",
                         .sequence_number = number,
                         .sub_sequence_number = are_aggregated ? records.size() : 0,
                         .approximate_arrival_timestamp = arrival});
    }
    return add(records, millis_behind_latest);
  }

  /// The shard is read from here on, so numbers continue after this position.
  void start_after(const sequence_position& position) {
    if (position.is_number()) highest_ = position;
  }
  /// The records after the position, in batches as large as the daemon's largest.
  [[nodiscard]] std::vector<batch> after(const sequence_position& position) const {
    constexpr std::size_t max_batch_size = 10'000;
    std::vector<batch> batches;
    std::vector<record> views;
    std::deque<std::string> numbers;
    const auto end_batch = [&] {
      if (views.empty()) return;
      batches.push_back({daemon_model::process_records_line(views, 0), views.back().position()});
      views.clear();
      numbers.clear();
    };
    for (auto it = records_.upper_bound(position); it != records_.end(); ++it) {
      const auto& [at, kept] = *it;
      const auto& [data, partition_key, arrival] = kept;
      views.emplace_back(record::fields{data, partition_key,
                                        numbers.emplace_back(at.sequence_number()),
                                        at.sub_sequence_number(), arrival});
      if (views.size() == max_batch_size) end_batch();
    }
    end_batch();
    return batches;
  }

 private:
  struct stored {
    std::optional<std::string> data{};
    std::optional<std::string> partition_key{};
    std::optional<milliseconds> arrival{};
    bool operator==(const stored&) const = default;
  };
  [[nodiscard]] static stored stored_of(const record::fields& fields) {
    return {std::optional<std::string>(fields.data),
            std::optional<std::string>(fields.partition_key), fields.approximate_arrival_timestamp};
  }

  /// The records of a batch come in the shard's order. A batch may begin with records that were
  /// delivered before (P69).
  /// Errors: std::invalid_argument.
  void require_possible(const sequence_position& position,
                        const std::optional<sequence_position>& before,
                        const record::fields& fields) const {
    const auto refuse = [&](const std::string& why) {
      throw std::invalid_argument("deliver_records: " + to_string(position) + why);
    };
    if (before && position <= *before) {
      refuse(" is not after " + to_string(*before) + ": a shard's records come in order");
    }
    if (!highest_ || position > *highest_) return;
    const auto found = records_.find(position);
    if (found == records_.end()) {
      refuse(" is not after " + to_string(*highest_) +
             ", and was not delivered before: a shard's records come in order");
    }
    const stored given = stored_of(fields);
    if (given != stored{} && given != found->second) {
      refuse(" was delivered with other fields: give the number alone to repeat it");
    }
  }

  std::map<sequence_position, stored> records_;
  std::optional<sequence_position> highest_;
};

/// The observations of a test, collected as things happen.
struct observations {
  explicit observations(std::shared_ptr<const virtual_clock> clock) : clock_(std::move(clock)) {}

  /// `last`: the persisted position, for an answer without a position.
  void answered(const daemon_model::answered& answer, const sequence_position& last) {
    // The model does not write a position that is persisted already. Then the answer has no
    // position.
    const auto& asked = answer.asked;
    const sequence_position position =
        answer.attempted ? *answer.attempted
        : asked.sequence_number
            ? sequence_position(*asked.sequence_number,
                                static_cast<std::uint64_t>(asked.sub_sequence_number.value_or(0)))
            : last;
    attempts.push_back({position, answer.error});
    if (answer.attempted && !answer.error) checkpoints.push_back(position);
    note("daemon", answer.line);
  }

  /// The daemon did anything but answer a checkpoint.
  void happened(const daemon_model::daemon_event& event) { note("daemon", to_string(event)); }

  void callback(action_kind kind) {
    callbacks.emplace_back(detail::callback_name(kind));
    note("callback", detail::callback_name(kind));
  }

  void logged(const log_entry& entry) {
    log.push_back(entry);
    note("log", std::string(detail::level_name(entry.level)) + ": " + entry.text);
  }

  /// Adds a line to the dialogue; a long text is cut short.
  void note(std::string_view source, std::string_view text) {
    const std::string time = std::to_string(clock_->elapsed().count());
    dialogue.append(time.size() < 7 ? 7 - time.size() : 0, ' ').append(time).append(" ms  ");
    dialogue.append(source).append(source.size() < 10 ? 10 - source.size() : 0, ' ');
    dialogue.append(text.substr(0, longest_note));
    if (text.size() > longest_note) {
      dialogue.append("... (").append(std::to_string(text.size())).append(" bytes)");
    }
    dialogue += '\n';
  }

  std::vector<sequence_position> checkpoints;
  std::vector<worker::checkpoint_attempt> attempts;
  std::vector<log_entry> log;
  std::vector<std::string> callbacks;
  std::string dialogue;

 private:
  std::shared_ptr<const virtual_clock> clock_;
};

/// The worker behind testing::worker: joins the daemon model with a child at a time, and runs both
/// until they are quiet.
class worker::virtual_worker : public virtual_host::surroundings {
 public:
  virtual_worker(processor_factory make_processor, const run_options& options,
                 worker_options settings)
      : make_processor_(std::move(make_processor)),
        options_(options),
        settings_(std::move(settings)),
        lease_(sequence_position("TRIM_HORIZON")) {
    make_processor_.require_valid();
    hold_lease();
    start_child();
  }

  /// A successor, which takes the lease from the predecessor.
  explicit virtual_worker(const virtual_worker& predecessor, std::uint32_t seed)
      : make_processor_(predecessor.make_processor_),
        options_(predecessor.options_),
        settings_(predecessor.settings_),
        clock_(predecessor.clock_),
        records_(predecessor.records_),
        shard_id_(predecessor.shard_id_),
        lease_(predecessor.lease_.take_over()) {
    settings_.seed = seed;
    hold_lease();
    start_child();
  }

  virtual_worker(const virtual_worker&) = delete;
  virtual_worker& operator=(const virtual_worker&) = delete;
  ~virtual_worker() {
    // The test is over, and no process was killed, so the processor is destroyed.
    if (!child_->is_gone()) child_->finish();
  }

  // The functions of testing::worker; `name` is the function's, for messages.
  void initialize(std::string_view shard_id, const sequence_position& start) {
    run_function("initialize", [&] {
      if (is_initialized_ && child_->is_gone()) {
        throw std::logic_error("initialize: " + why_not(action_kind::initialize));
      }
      require("initialize", action_kind::initialize);
      const bool was_lost = lease_.is_lost();
      shard_id_ = shard_id;
      records_->start_after(start);
      change_lease(daemon_model::lease(start));
      if (was_lost) lease_.lose();
      send_initialize();
    });
  }

  /// `make` adds the batch to the records; it is called when the batch can be delivered.
  void deliver(const char* name,
               const std::function<delivered_records::batch(delivered_records&)>& make) {
    run_function(name, [&] {
      require(name, action_kind::process_records);
      deliver_missed();
      require(name, action_kind::process_records);
      deliver(make(*records_));
    });
  }

  void call(const char* name, action_kind kind) {
    run_function(name, [&] {
      require(name, kind);
      call(kind);
    });
  }

  void end_input() {
    usage_->require_owner("end_input");
    const auto close = [this] {
      if (child_->is_gone()) throw std::logic_error("end_input: the child crashed");
      if (child_->status()) throw std::logic_error("end_input: " + how_it_left());
      close_input();
      child_->settle();
    };
    if (child_->is_running_user_code()) {
      close();
    } else {
      run_function("end_input", close);
    }
  }

  void advance(milliseconds time) {
    usage_->require_owner("advance");
    if (time < milliseconds(0)) throw std::invalid_argument("advance: time does not go backwards");
    const auto until = clock_->now() + detail::clamped(time);
    if (child_->is_running_user_code()) return child_->pass(until);
    run_function("advance", [&] {
      while (const auto timer = child_->next_timer()) {
        if (*timer > until) break;
        clock_->move_to(*timer);
        idle_->end();
        child_->fire_timers();
        run_until_quiet();
      }
      clock_->move_to(until);
    });
  }

  void crash() {
    usage_->require_owner("crash");
    const auto kill = [this] {
      if (child_->is_gone()) throw std::logic_error("crash: the child crashed already");
      if (child_->status()) throw std::logic_error("crash: " + how_it_left());
      seen_.note("child", "is killed");
      child_->kill();
    };
    if (!child_->is_running_user_code()) return run_function("crash", kill);
    child_->leave_callback_of_the_dead();
    kill();
    child_->leave_callback_of_the_dead();
  }

  void resume() {
    run_function("resume", [&] {
      require_shard("resume");
      if (!child_->is_gone() && !child_->status()) {
        throw std::logic_error("resume: the child still runs; crash() it, or end_input()");
      }
      if (!child_->is_gone()) child_->kill();
      faults_.clear();
      ends_input_in_callback_ = false;
      change_lease(lease_.take_over());
      seen_.note("daemon", "starts a successor");
      start_child();
      begin_successor();
    });
  }

  void fail_next_checkpoint(std::string_view exception, int times) {
    usage_->require_owner("fail_next_checkpoint");
    if (times < 1) throw std::invalid_argument("fail_next_checkpoint: times is less than 1");
    faults_.insert(faults_.end(), static_cast<std::size_t>(times), std::string(exception));
  }

  void lose_lease_silently() {
    usage_->require_owner("lose_lease_silently");
    lease_.lose();
  }

  [[nodiscard]] std::unique_ptr<virtual_worker> start_successor() {
    usage_->require_owner("start_successor");
    require_shard("start_successor");
    auto successor = std::make_unique<virtual_worker>(*this, settings_.seed + 1);
    seen_.note("daemon", "has lost the lease to a successor, and does not know it");
    successor->run_function("start_successor", [&] { successor->begin_successor(); });
    return successor;
  }

  void end_input_in_next_callback() {
    usage_->require_owner("end_input_in_next_callback");
    ends_input_in_callback_ = true;
  }

  [[nodiscard]] const observations& seen() const noexcept { return seen_; }
  [[nodiscard]] const daemon_model::lease& lease() const noexcept { return lease_; }
  [[nodiscard]] virtual_host& child() const noexcept { return *child_; }
  [[nodiscard]] const virtual_clock& clock() const noexcept { return *clock_; }
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept {
    return child_->thrown() ? child_->thrown() : thrown_;
  }
  [[nodiscard]] bool is_asked_to_stop() const noexcept { return is_asked_to_stop_; }
  /// A line about the faults that no checkpoint has met; empty when there are none.
  [[nodiscard]] std::string unmet_faults() const {
    if (faults_.empty()) return {};
    return "           faults that no checkpoint has met: " + std::to_string(faults_.size()) +
           ", the next is " + faults_.front() + "\n";
  }

  /// The arrival of records that are delivered now.
  [[nodiscard]] milliseconds arrival() const {
    return virtual_clock::first_date + clock_->elapsed();
  }

 private:
  void run_function(const char* name, const std::function<void()>& body) {
    usage_->require_owner(name);
    if (child_->is_running_user_code()) {
      child_->refuse(std::string(name) +
                     ": a callback runs, and the daemon waits until it has returned");
    }
    usage_->raise_remembered();
    idle_->end();
    body();
    run_until_quiet();
    shut_down_if_asked();
    usage_->raise_remembered();
  }

  /// Errors: std::logic_error when a daemon could not do this now.
  void require(const char* name, action_kind kind) const {
    if (const std::string why = why_not(kind); !why.empty()) {
      throw std::logic_error(std::string(name) + ": " + why);
    }
  }

  /// Errors: std::logic_error when no successor would read it.
  void require_shard(const std::string& name) const {
    if (!is_initialized_) throw std::logic_error(name + ": initialize comes first");
    if (lease_.checkpoint() == sequence_position("SHARD_END")) {
      throw std::logic_error(name + ": the shard is finished, nobody reads it again");
    }
  }

  [[nodiscard]] std::string why_not(action_kind kind) const {
    if (child_->is_gone()) return "the child crashed; resume() starts a successor";
    if (child_->status()) return how_it_left();
    if (consumer_->can_call(kind)) return {};
    if (kind == action_kind::initialize) return "the shard is initialized already";
    if (!is_initialized_) return "initialize comes first";
    if (consumer_->is_waiting()) {
      return "the daemon waits for the status of " +
             std::string(protocol::action_name(consumer_->waits_for()));
    }
    return "after shutdownRequested a daemon sends an ending or closes the input, nothing else";
  }

  [[nodiscard]] std::string how_it_left() const {
    std::string text = "the child has left with exit status " +
                       std::to_string(static_cast<int>(*child_->status()));
    const auto last =
        std::find_if(seen_.log.rbegin(), seen_.log.rend(),
                     [](const log_entry& entry) { return entry.level == log_level::error; });
    if (*child_->status() != kclxx::exit_status::ok && last != seen_.log.rend()) {
      text += " (" + last->text + ")";
    }
    return text;
  }

  void start_child() {
    is_asked_to_stop_ = false;
    if (child_ && child_->thrown()) thrown_ = child_->thrown();
    shard_context::fields names{.stream_name = settings_.stream_name,
                                .application_name = settings_.application_name,
                                .worker_id = settings_.worker_id};
    child_ = std::make_shared<virtual_host>(
        virtual_host::configuration{make_processor_, options_, std::move(names), settings_.seed},
        clock_, usage_, idle_, *this);
  }

  void change_lease(daemon_model::lease changed) {
    lease_ = std::move(changed);
    hold_lease();
  }

  void hold_lease() {
    lease_.set_fault([this](const sequence_position&) -> std::optional<std::string> {
      if (faults_.empty()) return std::nullopt;
      std::string name = std::move(faults_.front());
      faults_.pop_front();
      return name;
    });
    consumer_.emplace(lease_);
  }

  void send(action_kind kind, std::string line,
            const std::optional<sequence_position>& largest = std::nullopt) {
    seen_.note("daemon", line);
    child_->receive(std::move(line));
    tell_daemon(
        [&](auto& out) { consumer_->call(kind, protocol::action_name(kind), largest, out); });
  }

  void send_initialize() {
    is_initialized_ = true;
    delivered_ = lease_.checkpoint();
    send(action_kind::initialize, daemon_model::initialize_line(shard_id_, delivered_));
  }

  void call(action_kind kind) {
    if (kind == action_kind::shutdown_requested && settings_.shutdown_grace) {
      child_->end_daemon_at(clock_->now() + detail::clamped(*settings_.shutdown_grace));
    }
    send(kind, daemon_model::action_line(kind));
  }

  void deliver(delivered_records::batch batch) {
    if (batch.largest) delivered_ = std::max(delivered_, *batch.largest);
    send(action_kind::process_records, std::move(batch.line), batch.largest);
  }

  /// Initializes a processor at the lease's checkpoint, and delivers the records after it.
  void begin_successor() {
    send_initialize();
    run_until_quiet();
    if (!child_->status()) deliver_missed();  // with a status, initialize has failed
  }

  /// Delivers the records that only a predecessor or successor of this worker has delivered so far.
  void deliver_missed() {
    for (auto& batch : records_->after(delivered_)) {
      deliver(std::move(batch));
      run_until_quiet();
      if (child_->status()) return;
    }
  }

  void run_until_quiet() {
    for (;;) {
      if (idle_->is_over() && !child_->is_gone() && !child_->status()) {
        waits_without_end();
        child_->kill();
      }
      child_->settle();
      if (child_->run_user_code()) continue;
      if (child_->status() || child_->is_gone() || !consumer_->is_waiting()) return;
      if (child_->awaits_completion()) return;  // the test has to complete records
      // The daemon waits for a status, which waits for a timer: time passes until then.
      const auto timer = child_->next_timer();
      if (!timer) {
        throw std::logic_error("the daemon waits for the status of " +
                               std::string(protocol::action_name(consumer_->waits_for())) +
                               ", and nothing can bring it");
      }
      idle_->pass(*timer - clock_->now());
      clock_->move_to(*timer);
      child_->fire_timers();
    }
  }

  void close_input() {
    tell_daemon([&](auto& out) { consumer_->close(out); });
  }

  /// Tells the daemon of something, and carries out what it does then.
  template <class Occurrence>
  void tell_daemon(Occurrence occurrence) {
    daemon_model::daemon_events happened;
    occurrence(happened);
    for (daemon_model::daemon_event& event : happened) {
      if (auto* answer = std::get_if<daemon_model::answered>(&event)) {
        seen_.answered(*answer, consumer_->checkpointer().last());
        if (!answer->error) idle_->end();
        child_->receive(std::move(answer->line));
      } else if (!std::holds_alternative<daemon_model::returned>(event)) {
        seen_.happened(event);
        if (std::holds_alternative<daemon_model::close_input>(event)) child_->end_input();
      }
    }
  }

  // virtual_host::surroundings
  void written(std::string_view line) override {
    if (!line.empty()) seen_.note("child", line);
    tell_daemon([&](auto& out) { consumer_->on_line(line, out); });
  }
  void log(const log_entry& entry) override { seen_.logged(entry); }
  void callback_begins(action_kind kind) override {
    seen_.callback(kind);
    if (std::exchange(ends_input_in_callback_, false)) end_input();
  }
  void waits_without_end() override {
    std::string why = "a wait without end: " + idle_->text() + ", so the child was killed";
    if (child_->runs_executors()) {
      why +=
          ". What takes real time, such as a socket or a timer of Asio's own, is not waited for "
          "(see kclxx::asio::timer)";
    }
    if (!seen_.log.empty()) why += ". The last line of its log: " + seen_.log.back().text;
    seen_.note("child", "is killed: " + why);
    usage_->remember(std::move(why));
  }
  void asks_worker_to_stop() override {
    if (!std::exchange(is_asked_to_stop_, true)) seen_.note("child", "asks the worker to stop");
  }
  void daemon_ends() override {
    seen_.note("daemon", "leaves: its shutdown_grace is over");
    close_input();
  }
  void left(kclxx::exit_status status) override {
    seen_.note("child", "left with exit status " + std::to_string(static_cast<int>(status)));
    if (child_->status() != status) return;  // it got stuck while its processor was destroyed
    tell_daemon([&](auto& out) { consumer_->on_end_of_output(out); });
  }

  void shut_down_if_asked() {
    if (!is_asked_to_stop_ || !why_not(action_kind::shutdown_requested).empty()) return;
    call(action_kind::shutdown_requested);
    run_until_quiet();
  }

  processor_factory make_processor_;
  run_options options_;
  worker_options settings_;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<usage> usage_ = std::make_shared<usage>();
  std::shared_ptr<idle_time> idle_ =
      std::make_shared<idle_time>(detail::clamped(settings_.idle_limit));
  observations seen_{clock_};
  std::shared_ptr<delivered_records> records_ = std::make_shared<delivered_records>();
  sequence_position delivered_{"TRIM_HORIZON"};  // to the present child, up to here
  std::string shard_id_;
  std::deque<std::string> faults_;
  daemon_model::lease lease_;
  std::optional<daemon_model::shard_consumer> consumer_;
  std::shared_ptr<virtual_host> child_;
  std::exception_ptr thrown_;  // of earlier children
  bool is_initialized_ = false;
  bool ends_input_in_callback_ = false;
  bool is_asked_to_stop_ = false;  // by the present child
};

worker::worker(processor_factory make_processor, const run_options& options,
               worker_options settings)
    : worker_(std::make_unique<virtual_worker>(std::move(make_processor), options,
                                               std::move(settings))) {}

worker::worker(std::unique_ptr<virtual_worker> successor) : worker_(std::move(successor)) {}
worker::worker(worker&&) noexcept = default;
worker& worker::operator=(worker&&) noexcept = default;
worker::~worker() = default;

worker& worker::initialize(std::string_view shard_id, const sequence_position& start) {
  worker_->initialize(shard_id, start);
  return *this;
}

worker& worker::deliver(const std::vector<std::string>& payloads,
                        std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver", [&](delivered_records& records) {
    return records.add_payloads(payloads, false, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

worker& worker::deliver_records(const std::vector<record::fields>& records,
                                std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_records", [&](delivered_records& target) {
    return target.add(records, millis_behind_latest);
  });
  return *this;
}

worker& worker::deliver_aggregate(const std::vector<std::string>& payloads,
                                  std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_aggregate", [&](delivered_records& records) {
    return records.add_payloads(payloads, true, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

worker& worker::lose_lease() {
  worker_->call("lose_lease", action_kind::lease_lost);
  return *this;
}

worker& worker::end_shard() {
  worker_->call("end_shard", action_kind::shard_ended);
  return *this;
}

worker& worker::request_shutdown() {
  worker_->call("request_shutdown", action_kind::shutdown_requested);
  return *this;
}

worker& worker::end_input() {
  worker_->end_input();
  return *this;
}

worker& worker::advance(milliseconds time) {
  worker_->advance(time);
  return *this;
}

worker& worker::crash() {
  worker_->crash();
  return *this;
}

worker& worker::resume() {
  worker_->resume();
  return *this;
}

worker& worker::fail_next_checkpoint(std::string_view exception, int times) {
  worker_->fail_next_checkpoint(exception, times);
  return *this;
}

worker& worker::lose_lease_silently() {
  worker_->lose_lease_silently();
  return *this;
}

worker worker::start_successor() { return worker(worker_->start_successor()); }

worker& worker::end_input_in_next_callback() {
  worker_->end_input_in_next_callback();
  return *this;
}

const std::vector<sequence_position>& worker::checkpoints() const noexcept {
  return worker_->seen().checkpoints;
}

const sequence_position& worker::persisted() const noexcept {
  return worker_->lease().checkpoint();
}

const std::vector<worker::checkpoint_attempt>& worker::attempts() const noexcept {
  return worker_->seen().attempts;
}

const std::vector<log_entry>& worker::log() const noexcept { return worker_->seen().log; }

const std::vector<std::string>& worker::callbacks() const noexcept {
  return worker_->seen().callbacks;
}

std::optional<kclxx::exit_status> worker::exit_status() const noexcept {
  return worker_->child().status();
}

std::exception_ptr worker::thrown() const noexcept { return worker_->thrown(); }

bool worker::is_running() const noexcept {
  return !worker_->child().is_gone() && !worker_->child().status();
}

bool worker::stop_requested() const noexcept { return worker_->child().stop_requested(); }

bool worker::worker_stop_requested() const noexcept { return worker_->is_asked_to_stop(); }

std::chrono::steady_clock::time_point worker::now() const noexcept {
  return worker_->clock().now();
}

const std::string& worker::dialogue() const noexcept { return worker_->seen().dialogue; }

record_processor& worker::any_processor() const {
  record_processor* const found = worker_->child().processor();
  if (found == nullptr) {
    throw std::logic_error("processor: there is none before initialize and after a crash");
  }
  return *found;
}

void worker::refuse_type(const std::type_info& found, const std::type_info& wanted) {
  throw std::logic_error("processor: the factory made a " + name_of(found) + ", not a " +
                         name_of(wanted));
}

std::ostream& operator<<(std::ostream& out, const worker& source) {
  return out << source.dialogue() << source.worker_->unmet_faults();
}

}  // namespace kclxx::testing
