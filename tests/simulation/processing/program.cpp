// SPDX-License-Identifier: Apache-2.0
#include "simulation/processing/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <stdexcept>
#include <utility>

#include <kclxx/error.hpp>
#include <kclxx/observer.hpp>

namespace kclxx::simulation {

using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t most_calls = 100'000;
constexpr int patience = 20;  // how often a record fails in each child, when nothing else ends that

}  // namespace

/// A disk that is slow, full, locked by another process, or another worker's now.
class program::lot final : public parking_lot {
 public:
  lot(program& owner, unsigned full) : owner_(owner), full_(full) {}

  void prepare(const shard_context&) override {
    if (owner_.child_.is_calm || !owner_.random_.chance(full_)) return;
    owner_.note(fault::lot_not_prepared);
    owner_.stream_.fail_preparation();
    throw std::runtime_error("there is no disk");
  }
  void park(const shard_context& shard, std::span<const failed_record> failed) override {
    random_source& random = owner_.random_;
    const std::string name = "record " + std::string(failed.front().record.data());
    owner_.log_.note(
        [&] { return "  lot: " + name + ", " + std::to_string(failed.size()) + " in all"; });
    owner_.guarded([&] {
      if (shard.stop_token().stop_requested()) {
        throw violation("stop: " + name + " is parked after the stop token");
      }
    });
    if (!owner_.child_.is_calm) {
      if (random.chance(full_ / 2)) shard.sleep_for(milliseconds(random.below(3000)));
      if (random.chance(full_ / 4)) {
        owner_.note(fault::lot_locked);
        shard.sleep_for(std::chrono::seconds(5));
        for (const failed_record& bad : failed) ++owner_.stream_.of(bad.record).failed_parkings;
        throw std::runtime_error("another process keeps the lot locked");
      }
      if (random.chance(3)) {
        owner_.note(fault::parking_fenced);
        owner_.child_.is_fenced = true;
        throw fenced_error("another worker");
      }
      if (random.chance(full_)) {
        owner_.note(fault::parking_failed);
        for (const failed_record& bad : failed) ++owner_.stream_.of(bad.record).failed_parkings;
        throw std::runtime_error("no space left on the device");
      }
    }
    owner_.guarded([&] {
      for (const failed_record& bad : failed) {
        owner_.stream_.end(bad.record, planned_record::end::parked);
      }
    });
  }

 private:
  program& owner_;
  unsigned full_;
};

class program::watcher final : public observer {
 public:
  explicit watcher(program& owner) : owner_(owner) {}

  void on_event(const event_source&, const shard_event& event) override {
    if (const auto* tried = std::get_if<record_attempted>(&event)) {
      owner_.guarded([&] { owner_.stream_.read_attempt(tried->position, tried->attempt); });
    }
    if (owner_.child_.is_calm || !owner_.random_.chance(1)) return;
    owner_.note(fault::observer_threw);
    throw std::runtime_error("a metric cannot be pushed");
  }

 private:
  program& owner_;
};

/// Sees which records the form has.
class program::arrivals final : public record_processor {
 public:
  arrivals(program& owner, std::unique_ptr<record_processor> inner)
      : owner_(owner), inner_(std::move(inner)) {}

  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    const open_callback open(owner_);
    for (const record& event : batch) owner_.stream_.arrive(event, owner_.daemon_->now());
    inner_->process_records(batch, checkpointer);
    // As a daemon that believes the delivery to have failed; perhaps with fewer records.
    const record_batch again = owner_.repeated(batch);
    if (!again.empty()) inner_->process_records(again, checkpointer);
  }
  void lease_lost() override { inner_->lease_lost(); }
  void shard_ended(const checkpointer& checkpointer) override {
    const open_callback open(owner_);
    inner_->shard_ended(checkpointer);
  }
  void shutdown_requested(const checkpointer& checkpointer) override {
    const open_callback open(owner_);
    inner_->shutdown_requested(checkpointer);
  }

 private:
  struct open_callback {
    explicit open_callback(program& program) : owner(program) {
      owner.child_.is_in_callback = true;
    }
    ~open_callback() {
      owner.guarded([this] { owner.absorb_log(); });
      owner.child_.is_in_callback = false;
    }
    program& owner;
  };

  program& owner_;
  std::unique_ptr<record_processor> inner_;
};

/// The handler of one shard for the form with completions.
struct program::starter {
  program* owner;
  const shard_context* shard;
  std::shared_ptr<detail::thread_pool> pool;
  void operator()(completion done) const { owner->start(std::move(done), *shard, *pool); }
};

program::program(random_source& random, trace& log)
    : log_(log),
      random_(random),
      form_(static_cast<form>(random_.below(6))),
      meddles_(random_.chance(50)),
      declares_(random_.chance(50)),
      is_crowded_(form_ == form::completions && random_.chance(30)),
      policy_(random_policy()),
      options_(random_options()),
      gathering_(random_gathering()),
      stream_(random_, 1 + random_.below(80),
              options_.order == order::key || form_ < form::parallel, is_crowded_) {
  log_.note([&] {
    return "form " + std::to_string(static_cast<int>(form_)) + ", attempts " +
           std::to_string(policy_.max_attempts.value_or(0)) + ", bad record " +
           std::to_string(static_cast<int>(policy_.bad_record)) + ", breaker " +
           std::to_string(policy_.breaker ? policy_.breaker->failures : 0) + ", lanes " +
           std::to_string(options_.lanes) + ", window " + std::to_string(options_.window_records) +
           " records, " + std::to_string(options_.window_bytes) + " bytes, gathered " +
           std::to_string(gathering_.max_records.value_or(0)) + " records, " +
           std::to_string(gathering_.max_bytes.value_or(0)) + " bytes, linger " +
           std::to_string(gathering_.linger.count()) + " ms, order " +
           std::to_string(static_cast<int>(gathering_.order)) + ", stuck after " +
           std::to_string(options_.stuck_after.count()) + " ms";
  });
}

program::~program() = default;

failure_policy program::random_policy() {
  failure_policy policy;
  if (!is_crowded_ && random_.chance(80)) {
    policy.max_attempts = 1 + static_cast<int>(random_.below(5));
  }
  policy.initial_backoff = milliseconds(random_.below(1000));
  policy.max_backoff = milliseconds(random_.below(8000));
  policy.bad_record = static_cast<bad_record>(random_.below(3));
  if (random_.chance(50)) policy.breaker.reset();
  if (policy.breaker && random_.chance(50))
    policy.breaker->failures =
        1 + policy.max_attempts.value_or(0) + static_cast<int>(random_.below(20));
  policy.lot = std::make_shared<lot>(*this, random_.chance(50) ? 0 : 40);
  return policy;
}

parallel_options program::random_options() {
  parallel_options options;
  options.lanes = 1 + random_.below(is_crowded_ || random_.chance(30) ? 4 : 64);
  options.order = random_.chance(70) ? order::key : order::none;
  options.window_records = 1 + random_.below(!is_crowded_ && random_.chance(50) ? 8 : 200);
  if (!is_crowded_ && random_.chance(20)) options.window_bytes = 1 + random_.below(20);
  options.drain_timeout = milliseconds(random_.below(20000));
  options.stuck_after = milliseconds(random_.below(4000));
  return options;
}

batch_options program::random_gathering() {
  batch_options options;
  if (form_ != form::gathering) return options;
  if (random_.chance(60)) options.max_records = 1 + random_.below(40);
  if (random_.chance(40)) options.max_bytes = 1 + random_.below(60);
  if (random_.chance(85)) options.linger = milliseconds(1 + random_.below(6000));
  options.order = random_.chance(50) ? order::key : order::none;
  return options;
}

run_options program::make_options() {
  run_options options;
  options.checkpoint_interval = milliseconds(random_.chance(50) ? 0 : random_.below(5000));
  if (random_.chance(30)) options.observers.push_back(std::make_shared<watcher>(*this));
  return options;
}

processor_factory program::make_program() {
  const auto make = make_form();
  return [this, make](const shard_context& shard) {
    return std::make_unique<arrivals>(*this, make(shard));
  };
}

processor_factory program::make_form() {
  const auto one_by_one = [this](const record& event, const shard_context& shard) {
    process(event, shard);
  };
  switch (form_) {
    case form::each:
      return each(one_by_one, policy_);
    case form::batches:
    case form::batches_with_position:
    case form::gathering:
      return batches(
          [this](record_batch batch, const shard_context& shard) { process_batch(batch, shard); },
          policy_, gathering_);
    case form::parallel:
      return parallel(record_handler(one_by_one), policy_, options_);
    case form::completions:
      return parallel(
          async_record_handler([this](const shard_context& shard) {
            return starter{this, &shard, detail::service_access::of(shard)->make_thread_pool(1)};
          }),
          policy_, options_);
  }
  std::abort();
}

meetings& program::met() {
  static meetings counts(
      {"a handler fails",
       "a handler fails for good",
       "a handler is fenced",
       "a record cannot be parked",
       "the lot is locked",
       "the lot cannot be prepared",
       "the lot is fenced",
       "a completion is dropped",
       "a handler returns after a stop",
       "a handler throws after a stop",
       "a timer throws",
       "an observer throws",
       "a handler reports a failure",
       "an outage begins",
       "the child is killed",
       "the lease is lost",
       "the lease is lost silently",
       "a shutdown is requested",
       "the input ends in a callback",
       "a checkpoint will be refused",
       "a dead child's completion is reported",
       "a delivery is repeated",
       "something is stuck",
       "the circuit opens",
       "a record ends the session"},
      {"each", "batches", "batches that tell the position", "batches that are gathered", "parallel",
       "completions", "a handler runs", "a record waits for its next attempt",
       "a record waits to be parked", "a record is parked", "a record is skipped",
       "the window is full", "the lease was lost silently", "the circuit is open",
       "records wait for a first attempt", "no callback is open", "a callback is open"});
  return counts;
}

void program::note(fault what) const {
  const auto index = static_cast<std::size_t>(what);
  log_.note([&] { return "  " + met().fault(index); });
  const auto count = [&](std::size_t state) { met().count(index, state); };
  const auto has = [&](auto predicate) { return stream_.has(predicate); };
  using end = planned_record::end;
  using plan = const planned_record&;
  const auto is_left = [](plan planned) {
    return planned.how == end::none && !planned.is_in_progress;
  };
  count(static_cast<std::size_t>(form_));
  if (has([](plan planned) { return planned.is_in_progress; })) count(6);
  if (has([&](plan planned) { return is_left(planned) && planned.failed > 0; })) count(7);
  if (has([&](plan planned) { return is_left(planned) && planned.failed_parkings > 0; })) count(8);
  if (has([](plan planned) { return planned.how == end::parked; })) count(9);
  if (has([](plan planned) { return planned.how == end::skipped; })) count(10);
  if (form_ >= form::parallel && stream_.held(daemon_->persisted()) >= options_.window_records) {
    count(11);
  }
  if (child_.is_lease_lost) count(12);
  if (child_.is_circuit_open) count(13);
  if (has([](plan planned) { return planned.arrived && planned.attempts == 0; })) count(14);
  count(child_.is_in_callback ? 16 : 15);
}

template <class Body>
void program::guarded(Body body) noexcept {
  try {
    body();
  } catch (const violation& what) {
    if (violated_.empty()) violated_ = what.what();
  }
}

void program::begin(const record& event, const shard_context& shard, bool is_first) {
  if (++calls_ > most_calls) {  // in a callback that never returns, nothing else ends it
    std::cout << "seed 0: stuck: handlers are called without end\n" << std::flush;
    std::_Exit(EXIT_FAILURE);
  }
  log_.note([&] { return "  handler: record " + std::string(event.data()); });
  guarded([&] {
    const std::string name = "record " + std::string(event.data());
    if (shard.stop_token().stop_requested()) {
      throw violation("stop: " + name + " comes after the stop token");
    }
    if (child_.is_fenced) throw violation("fence: " + name + " comes after a fenced_error");
    absorb_log();
    stream_.begin(event, is_first);
    if (form_ >= form::parallel) stream_.require_lane(options_.lanes);
    if (form_ >= form::parallel && options_.window_records >= stream_.size() &&
        options_.window_bytes > 1000) {
      stream_.require_new_work(event, options_.lanes, child_.is_circuit_open);
    }
  });
}

/// Before the stop token, nothing has happened to the record.
void program::leave(const record& event, bool is_in_batch) {
  guarded([&] { absorb_log(); });
  const std::uint64_t how = random_.below(is_in_batch ? 5 : 4);
  note(how == 0 ? fault::returned_after_stop : fault::threw_after_stop);
  stream_.leave(event);
  log_.note([&] { return "  of record " + std::string(event.data()); });
  if (how == 1) throw permanent_error("permanent");
  if (how == 2 && random_.chance(20)) throw fenced_error("another worker");
  if (how == 2 || how == 3) throw std::runtime_error("cancelled");
  if (how == 4) throw batch_failure(event.position());
}

bool program::spend_time(const record& event, const shard_context& shard) {
  milliseconds time = stream_.of(event).time;
  if (shard.now() < outage_end_) time += milliseconds(50 + random_.below(1000));  // a timeout
  if (time.count() > 0) shard.sleep_for(time);
  return !shard.stop_token().stop_requested();
}

void program::throw_if_it_fails(const record& event, const shard_context& shard) {
  planned_record& plan = stream_.of(event);
  if (child_.is_calm) return;
  if (shard.now() < outage_end_) {
    stream_.interrupt(event);
    plan.has_failed = true;
    if (declares_) throw outage_error("the store is away");
    if (policy_.max_attempts && policy_.bad_record == bad_record::stop) child_.may_fail = true;
    throw std::runtime_error("the store is away");
  }
  if (plan.failures == 0) return;
  if (random_.chance(1)) {
    note(fault::fenced);
    child_.is_fenced = true;
    stream_.interrupt(event);
    throw fenced_error("another worker");
  }
  if (has_no_end() && plan.failed >= patience) return;
  note(plan.is_permanent ? fault::failed_permanently : fault::failed);
  if (policy_.bad_record == bad_record::stop) child_.may_fail = true;
  if (plan.failures > 0) --plan.failures;
  plan.has_failed = true;
  guarded([&] { stream_.fail(event, has_no_end() ? 0 : *policy_.max_attempts); });
  if (plan.is_permanent) throw permanent_error("permanent");
  if (random_.chance(30)) throw 1;  // NOLINT: the kind of exception changes between attempts
  throw std::runtime_error("failed");
}

void program::process(const record& event, const shard_context& shard) {
  begin(event, shard, true);
  meddle(shard);
  if (!spend_time(event, shard)) return leave(event, false);
  throw_if_it_fails(event, shard);
  meddle(shard);
  if (shard.stop_token().stop_requested()) return leave(event, false);
  guarded([&] { stream_.end(event, planned_record::end::succeeded); });
}

/// Effects come at the end: what precedes a failure has its effect only if the position is
/// reported.
void program::process_batch(const record_batch& batch, const shard_context& shard) {
  guarded([&] {
    absorb_log();
    std::size_t bytes = 0;
    for (const record& event : batch) bytes += event.data().size();
    const bool is_too_large = batch.size() > gathering_.max_records.value_or(batch.size()) ||
                              (bytes > gathering_.max_bytes.value_or(bytes) && batch.size() > 1);
    if (batch.empty() || is_too_large) {
      throw violation("limit: a batch of " + std::to_string(batch.size()) + " records");
    }
  });
  if (form_ == form::gathering && random_.chance(70)) return name_failures(batch, shard);
  const bool tells = form_ == form::batches_with_position && random_.chance(80);
  const auto succeed = [&](std::size_t count) {
    for (const record& event : batch.slice(0, count)) {
      guarded([&] { stream_.end(event, planned_record::end::succeeded); });
    }
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    begin(batch[i], shard, i == 0);
    stream_.interrupt(batch[i]);
    if (i == 0) meddle(shard);
    if (!spend_time(batch[i], shard)) {
      guarded([&] { absorb_log(); });
      for (const record& event : batch) stream_.leave(event);
      return leave(batch[i], true);
    }
    const planned_record& plan = stream_.of(batch[i]);
    const bool is_blamed = tells || batch.size() == 1;
    if (!is_blamed && !child_.is_calm && plan.failures != 0) throw std::runtime_error("somewhere");
    try {
      throw_if_it_fails(batch[i], shard);
    } catch (...) {
      succeed(tells ? i : 0);
      if (!tells) throw;
      throw batch_failure(batch[i].position(), std::current_exception());
    }
  }
  succeed(batch.size());
}

/// All records have their effect but those that are named and, with order::key, the later ones of
/// their keys.
void program::name_failures(const record_batch& batch, const shard_context& shard) {
  std::vector<batch_failure::failed> failed;
  std::set<std::string_view> keys;
  for (const record& event : batch) {
    if (keys.contains(*event.partition_key())) continue;
    begin(event, shard, &event == batch.begin());
    stream_.interrupt(event);
    if (&event == batch.begin()) meddle(shard);
    if (!spend_time(event, shard)) {
      guarded([&] { absorb_log(); });
      for (const record& unfinished : batch) stream_.leave(unfinished);
      return leave(event, true);
    }
    try {
      throw_if_it_fails(event, shard);
      guarded([&] {
        if (gathering_.order == order::key) stream_.require_order(event);
        stream_.end(event, planned_record::end::succeeded);
      });
    } catch (const fenced_error&) {
      throw;
    } catch (...) {
      failed.push_back({event.position(), std::current_exception()});
      if (gathering_.order == order::key) keys.insert(*event.partition_key());
    }
  }
  if (!failed.empty()) throw batch_failure(std::move(failed));
}

void program::start(completion done, const shard_context& shard, detail::thread_pool& pool) {
  begin(done.record(), shard, true);
  guarded([&] {
    if (done.attempt() != stream_.of(done.record()).attempts) {
      throw violation("attempt: record " + std::string(done.record().data()) + " has " +
                      std::to_string(done.attempt()) + " after another number of failures");
    }
  });
  meddle(shard);
  const std::string number(done.record().data());
  taken_.push_back(std::move(done));
  shard_ = &shard;
  // Some are reported while the daemon does something else.
  if (!child_.is_calm && child_.can_wait && random_.chance(50)) return;
  pool.post([this, &shard] {
    if (taken_.empty()) return;
    spend_time(taken_.back().record(), shard);
    if (!taken_.empty()) settle_one();
  });
}

/// Completions are reported in any order.
void program::settle_one() {
  if (taken_.empty()) return;
  const auto at = taken_.begin() + static_cast<std::ptrdiff_t>(random_.below(taken_.size()));
  completion done = std::move(*at);
  taken_.erase(at);
  settle(std::move(done), *shard_);
}

void program::settle(completion done, const shard_context& shard) {
  if (random_.chance(20)) done.touch();
  try {
    if (shard.stop_token().stop_requested()) {
      leave(done.record(), false);
      if (random_.chance(50)) done.complete();
      return;
    }
    throw_if_it_fails(done.record(), shard);
  } catch (const fenced_error&) {
    return done.fail();
  } catch (const outage_error&) {
    return done.fail();
  } catch (...) {
    if (!random_.chance(20)) return done.fail();
    if (shard.stop_token().stop_requested()) return;
    if (stream_.of(done.record()).is_permanent) return done.fail();
    note(fault::dropped);
    return;
  }
  guarded([&] { stream_.end(done.record(), planned_record::end::succeeded); });
  done.complete();
}

void program::settle_all() {
  while (!taken_.empty()) settle_one();
}

void program::end_waiting() {
  child_.can_wait = false;
  settle_all();
}

void program::settle_late() {
  if (of_dead_children_.empty()) return;
  completion late = std::move(of_dead_children_.back());
  of_dead_children_.pop_back();
  note(fault::late_report);
  if (random_.chance(50)) late.complete();
}

void program::meddle(const shard_context& shard) {
  if (!meddles_) return;
  const std::uint64_t what = random_.below(100);
  if (what < 5) {
    shard.after(milliseconds(random_.below(3000)), [this] {
      if (child_.is_calm || !random_.chance(10)) return;
      note(fault::timer_threw);
      child_.may_fail = true;
      throw std::runtime_error("a timer");
    });
  } else if (what < 6 && !child_.is_calm) {
    note(fault::reported_failure);
    child_.may_fail = true;
    shard.fail(std::make_exception_ptr(std::runtime_error("a connection broke")));
  } else if (what < 7 && !child_.is_calm && form_ < form::parallel &&
             !shard.stop_token().stop_requested()) {
    note(fault::input_ends);
    daemon_->end_input();
  }
}

record_batch program::repeated(const record_batch& batch) {
  const bool is_over = daemon_->exit_status() || daemon_->stop_requested() || child_.is_fenced;
  if (batch.empty() || child_.is_calm || is_over || !random_.chance(20)) return {};
  note(fault::repeated);
  guarded([&] { absorb_log(); });
  const record_batch again = batch.slice(0, 1 + random_.below(batch.size()));
  // A form that still has some of the records leaves all of them out.
  const bool is_complete = std::all_of(batch.begin(), batch.end(), [this](const record& event) {
    return stream_.of(event).how != planned_record::end::none;
  });
  if (form_ < form::parallel && is_complete) {
    guarded([&] {
      for (const record& event : again) stream_.repeat(event, daemon_->now());
    });
  }
  return again;
}

void program::begin_outage(milliseconds time) {
  // Good records are to be given up.
  if (policy_.max_attempts && !policy_.breaker && !declares_) return;
  note(fault::outage);
  outage_end_ = daemon_->now() + time;
  expect_outage();
}

/// Unless it is declared, each child can give up one record, and as many as the failures suffice
/// for that open the circuit: side by side each record is one of these failures only once.
void program::expect_outage() {
  if (!policy_.max_attempts || declares_ || daemon_->now() >= outage_end_) return;
  // A call that names what failed, and completes others, is a success to the circuit.
  const int of_call = form_ == form::gathering ? static_cast<int>(stream_.size()) : 0;
  const int failures_of_record = form_ >= form::parallel ? 1 : *policy_.max_attempts;
  stream_.allow_given_up(1 + of_call + policy_.breaker->failures / failures_of_record);
}

/// On one thread a callback that waits for a completion would wait indefinitely.
void program::expect(std::size_t records) {
  if (!has_room_for(records)) return end_waiting();
  child_.can_wait = true;
}

bool program::has_room_for(std::size_t records) const {
  return options_.window_bytes > 1000 &&
         stream_.held(daemon_->persisted()) + records < options_.window_records;
}

void program::absorb_log() {
  const auto& lines = daemon_->log();
  while (log_read_ < lines.size()) {
    const std::string& line = lines[log_read_++].text;
    log_.note([&] { return "  log: " + line; });
    read_log(line);
    stream_.read_log(line);
  }
}

void program::read_log(const std::string& line) {
  if (line.find(" is stuck: ") != std::string::npos) note(fault::stuck);
  if (line.find("; the session ends: ") != std::string::npos) note(fault::session_ends);
  if (line.starts_with("the circuit is open")) {
    note(fault::circuit_opens);
    child_.is_circuit_open = true;
    if (form_ >= form::parallel && line.find("reports an outage") == std::string::npos) {
      stream_.require_failed(policy_.breaker->failures);
    }
  } else if (line.starts_with("the circuit is closed")) {
    child_.is_circuit_open = false;
  }
}

void program::check() {
  guarded([&] {
    absorb_log();
    stream_.check(daemon_->persisted());
    if (persisted_ && daemon_->persisted() < *persisted_) {
      throw violation("backward: " + to_string(daemon_->persisted()) + " is persisted after " +
                      to_string(*persisted_));
    }
    if (daemon_->persisted().is_number()) persisted_ = daemon_->persisted();
    const bool is_at_work =
        !daemon_->exit_status() && !daemon_->stop_requested() && !child_.is_fenced;
    if (form_ == form::gathering && is_at_work) {
      stream_.require_handed_over(daemon_->now(), gathering_.linger);
    }
  });
  if (!violated_.empty()) throw violation(violated_);
}

void program::end_child(bool is_calm) {
  stream_.end_child();
  for (completion& done : taken_) of_dead_children_.push_back(std::move(done));
  taken_.clear();
  child_ = {.is_calm = is_calm};
  if (is_calm) outage_end_ = {};
  expect_outage();
}

}  // namespace kclxx::simulation
