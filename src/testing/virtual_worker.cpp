// SPDX-License-Identifier: Apache-2.0
#include "testing/virtual_worker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "base/duration.hpp"
#include "base/printable.hpp"
#include "daemon_model/lines.hpp"

namespace kclxx::testing {

namespace {

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

void delivered_records::start_after(const sequence_position& position) {
  if (position.is_number()) highest_ = position;
}

delivered_records::batch delivered_records::add(std::span<const record::fields> records,
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

delivered_records::stored delivered_records::stored_of(const record::fields& fields) {
  return {std::optional<std::string>(fields.data), std::optional<std::string>(fields.partition_key),
          fields.approximate_arrival_timestamp};
}

/// The records of a batch come in the shard's order. A batch may begin with records that were
/// delivered before (P69).
void delivered_records::require_possible(const sequence_position& position,
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

delivered_records::batch delivered_records::add_payloads(
    std::span<const std::string> payloads, bool are_aggregated, milliseconds arrival,
    std::optional<milliseconds> millis_behind_latest) {
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

std::vector<delivered_records::batch> delivered_records::after(
    const sequence_position& position) const {
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

namespace {

constexpr std::size_t longest_note = 240;

}  // namespace

void observations::answered(const daemon_model::answered& answer, const sequence_position& last) {
  // The model does not write a position that is persisted already. Then the answer has no position.
  const auto& asked = answer.asked;
  const sequence_position position =
      answer.attempted ? *answer.attempted
      : asked.sequence_number
          ? sequence_position(*asked.sequence_number,
                              static_cast<std::uint64_t>(asked.sub_sequence_number.value_or(0)))
          : last;
  attempts_.push_back({position, answer.error});
  if (answer.attempted && !answer.error) checkpoints_.push_back(position);
  note("daemon", answer.line);
}

void observations::happened(const daemon_model::daemon_event& event) {
  std::ostringstream text;
  text << event;
  note("daemon", text.str());
}

void observations::callback(protocol::action_kind kind) {
  callbacks_.emplace_back(detail::callback_name(kind));
  note("callback", detail::callback_name(kind));
}

void observations::log(const log_entry& entry) {
  log_.push_back(entry);
  note("log", std::string(detail::level_name(entry.level)) + ": " + entry.text);
}

void observations::note(std::string_view source, std::string_view text) {
  std::string& target = dialogue_;
  const std::string time = std::to_string(clock_->elapsed().count());
  target.append(time.size() < 7 ? 7 - time.size() : 0, ' ').append(time).append(" ms  ");
  target.append(source).append(source.size() < 10 ? 10 - source.size() : 0, ' ');
  target.append(text.substr(0, longest_note));
  if (text.size() > longest_note) {
    target.append("... (").append(std::to_string(text.size())).append(" bytes)");
  }
  target += '\n';
}

using protocol::action_kind;

worker::virtual_worker::virtual_worker(processor_factory make_processor, const run_options& options,
                                       worker_options settings)
    : make_processor_(std::move(make_processor)),
      options_(options),
      settings_(std::move(settings)),
      lease_(sequence_position("TRIM_HORIZON")) {
  make_processor_.require_valid();
  hold_lease();
  start_child();
}

worker::virtual_worker::virtual_worker(const virtual_worker& predecessor, std::uint32_t seed)
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

worker::virtual_worker::~virtual_worker() {
  // The test is over, and no process was killed, so the processor is destroyed.
  if (!child_->is_gone()) child_->finish();
}

void worker::virtual_worker::start_child() {
  is_asked_to_stop_ = false;
  if (child_ && child_->thrown()) thrown_ = child_->thrown();
  shard_context::fields names{.stream_name = settings_.stream_name,
                              .application_name = settings_.application_name,
                              .worker_id = settings_.worker_id};
  child_ = std::make_shared<virtual_host>(
      virtual_host::configuration{make_processor_, options_, std::move(names), settings_.seed},
      clock_, usage_, idle_,
      virtual_host::surroundings{[this](std::string_view line) {
                                   if (!line.empty()) seen_.note("child", line);
                                   daemon_model::daemon_events out;
                                   consumer_->on_line(line, out);
                                   take(std::move(out));
                                 },
                                 [this](const log_entry& entry) { seen_.log(entry); },
                                 [this](protocol::action_kind kind) { on_callback(kind); },
                                 [this] { on_wait_without_end(); },
                                 [this] {
                                   if (!std::exchange(is_asked_to_stop_, true)) {
                                     seen_.note("child", "asks the worker to stop");
                                   }
                                 },
                                 [this] {
                                   seen_.note("daemon", "leaves: its shutdown_grace is over");
                                   close_input();
                                 },
                                 [this](kclxx::exit_status status) { on_left(status); }});
}

void worker::virtual_worker::change_lease(daemon_model::lease changed) {
  lease_ = std::move(changed);
  hold_lease();
}

void worker::virtual_worker::hold_lease() {
  lease_.set_fault([this](const sequence_position&) -> std::optional<std::string> {
    if (faults_.empty()) return std::nullopt;
    std::string name = std::move(faults_.front());
    faults_.pop_front();
    return name;
  });
  consumer_.emplace(lease_);
}

void worker::virtual_worker::run_function(const char* name, const std::function<void()>& body) {
  usage_->require_owner(name);
  if (child_->is_running_user_code()) {
    usage_->refuse_in_callback(std::string(name) +
                               ": a callback runs, and the daemon waits until it has returned");
  }
  usage_->raise_remembered();
  idle_->end();
  body();
  run_until_quiet();
  shut_down_if_asked();
  usage_->raise_remembered();
}

void worker::virtual_worker::shut_down_if_asked() {
  if (!is_asked_to_stop_ || !why_not(action_kind::shutdown_requested).empty()) return;
  call(action_kind::shutdown_requested);
  run_until_quiet();
}

void worker::virtual_worker::require(const char* name, action_kind kind) const {
  if (const std::string why = why_not(kind); !why.empty()) {
    throw std::logic_error(std::string(name) + ": " + why);
  }
}

std::string worker::virtual_worker::why_not(action_kind kind) const {
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

std::string worker::virtual_worker::how_it_left() const {
  std::string text =
      "the child has left with exit status " + std::to_string(static_cast<int>(*child_->status()));
  const auto last =
      std::find_if(seen_.log().rbegin(), seen_.log().rend(),
                   [](const log_entry& entry) { return entry.level == log_level::error; });
  if (*child_->status() != kclxx::exit_status::ok && last != seen_.log().rend()) {
    text += " (" + last->text + ")";
  }
  return text;
}

void worker::virtual_worker::run_until_quiet() {
  for (;;) {
    if (idle_->is_over() && !child_->is_gone() && !child_->status()) {
      on_wait_without_end();
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

void worker::virtual_worker::send(action_kind kind, std::string line,
                                  const std::optional<sequence_position>& largest) {
  seen_.note("daemon", line);
  child_->receive(std::move(line));
  daemon_model::daemon_events out;
  consumer_->call(kind, protocol::action_name(kind), largest, out);
  take(std::move(out));
}

void worker::virtual_worker::initialize(std::string_view shard_id, const sequence_position& start) {
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

void worker::virtual_worker::send_initialize() {
  is_initialized_ = true;
  delivered_ = lease_.checkpoint();
  send(action_kind::initialize, daemon_model::initialize_line(shard_id_, delivered_));
}

void worker::virtual_worker::deliver(
    const char* name, const std::function<delivered_records::batch(delivered_records&)>& make) {
  run_function(name, [&] {
    require(name, action_kind::process_records);
    deliver_missed();
    require(name, action_kind::process_records);
    deliver(make(*records_));
  });
}

void worker::virtual_worker::deliver_missed() {
  for (auto& batch : records_->after(delivered_)) {
    deliver(std::move(batch));
    run_until_quiet();
    if (child_->status()) return;
  }
}

void worker::virtual_worker::deliver(delivered_records::batch batch) {
  if (batch.largest) delivered_ = std::max(delivered_, *batch.largest);
  send(action_kind::process_records, std::move(batch.line), batch.largest);
}

void worker::virtual_worker::call(const char* name, action_kind kind) {
  run_function(name, [&] {
    require(name, kind);
    call(kind);
  });
}

void worker::virtual_worker::call(action_kind kind) {
  if (kind == action_kind::shutdown_requested && settings_.shutdown_grace) {
    child_->end_daemon_at(clock_->now() + detail::clamped(*settings_.shutdown_grace));
  }
  send(kind, daemon_model::action_line(kind));
}

void worker::virtual_worker::end_input() {
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

void worker::virtual_worker::close_input() {
  daemon_model::daemon_events out;
  consumer_->close(out);
  take(std::move(out));
}

void worker::virtual_worker::advance(milliseconds time) {
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

void worker::virtual_worker::crash() {
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

void worker::virtual_worker::require_shard(const std::string& name) const {
  if (!is_initialized_) throw std::logic_error(name + ": initialize comes first");
  if (lease_.checkpoint() == sequence_position("SHARD_END")) {
    throw std::logic_error(name + ": the shard is finished, nobody reads it again");
  }
}

void worker::virtual_worker::resume() {
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

std::unique_ptr<worker::virtual_worker> worker::virtual_worker::start_successor() {
  usage_->require_owner("start_successor");
  require_shard("start_successor");
  auto successor = std::make_unique<virtual_worker>(*this, settings_.seed + 1);
  seen_.note("daemon", "has lost the lease to a successor, and does not know it");
  successor->run_function("start_successor", [&] { successor->begin_successor(); });
  return successor;
}

void worker::virtual_worker::begin_successor() {
  send_initialize();
  run_until_quiet();
  if (!child_->status()) deliver_missed();  // with a status, initialize has failed
}

void worker::virtual_worker::lose_lease_silently() {
  usage_->require_owner("lose_lease_silently");
  lease_.lose();
}

void worker::virtual_worker::end_input_in_next_callback() {
  usage_->require_owner("end_input_in_next_callback");
  ends_input_in_callback_ = true;
}

void worker::virtual_worker::fail_next_checkpoint(std::string_view exception, int times) {
  usage_->require_owner("fail_next_checkpoint");
  if (times < 1) throw std::invalid_argument("fail_next_checkpoint: times is less than 1");
  faults_.insert(faults_.end(), static_cast<std::size_t>(times), std::string(exception));
}

std::string worker::virtual_worker::unmet_faults() const {
  if (faults_.empty()) return {};
  return "           faults that no checkpoint has met: " + std::to_string(faults_.size()) +
         ", the next is " + faults_.front() + "\n";
}

worker::milliseconds worker::virtual_worker::arrival() const {
  return virtual_clock::first_date + clock_->elapsed();
}

void worker::virtual_worker::take(daemon_model::daemon_events happened) {
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

void worker::virtual_worker::on_callback(protocol::action_kind kind) {
  seen_.callback(kind);
  if (std::exchange(ends_input_in_callback_, false)) end_input();
}

void worker::virtual_worker::on_wait_without_end() {
  std::string why = "a wait without end: " + idle_->text() + ", so the child was killed";
  if (child_->runs_executors()) {
    why +=
        ". What takes real time, such as a socket or a timer of Asio's own, is not waited for "
        "(see kclxx::asio::timer)";
  }
  if (!seen_.log().empty()) why += ". The last line of its log: " + seen_.log().back().text;
  seen_.note("child", "is killed: " + why);
  usage_->remember(std::move(why));
}

void worker::virtual_worker::on_left(kclxx::exit_status status) {
  seen_.note("child", "left with exit status " + std::to_string(static_cast<int>(status)));
  if (child_->status() != status) return;  // it got stuck while its processor was destroyed
  daemon_model::daemon_events out;
  consumer_->on_end_of_output(out);
  take(std::move(out));
}

}  // namespace kclxx::testing
