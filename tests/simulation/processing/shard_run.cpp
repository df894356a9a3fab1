// SPDX-License-Identifier: Apache-2.0
#include "simulation/processing/shard_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>

#include <kclxx/error.hpp>

namespace kclxx::simulation {

using std::chrono::milliseconds;

namespace {

constexpr int most_children = 6;
constexpr std::uint64_t most_calls = 100'000;
constexpr int patience = 20;  // with attempts without end, how often a record fails in each child

run_options random_run_options(random_source& random) {
  run_options options;
  options.checkpoint_interval = milliseconds(random.chance(50) ? 0 : random.below(5000));
  return options;
}

}  // namespace

/// A disk that is full now and then.
class shard_run::lot final : public parking_lot {
 public:
  lot(shard_run& owner, unsigned full) : owner_(owner), full_(full) {}

  void park(const shard_context&, const failed_record& failed) override {
    if (!owner_.is_calm_ && owner_.random_.chance(full_)) {
      owner_.note(fault::parking_failed);
      ++owner_.stream_.of(failed.record).failed_parkings;
      throw std::runtime_error("no space left on the device");
    }
    owner_.guarded([&] { owner_.stream_.end(failed.record, planned_record::end::parked); });
  }

 private:
  shard_run& owner_;
  unsigned full_;
};

/// The handler of one shard for the form with completions.
struct shard_run::starter {
  shard_run* owner;
  const shard_context* shard;
  std::shared_ptr<thread_pool> pool;
  void operator()(completion one) const { owner->start(std::move(one), *shard, *pool); }
};

shard_run::shard_run(std::uint64_t seed, trace& log)
    : log_(log),
      random_(seed),
      form_(static_cast<form>(random_.below(5))),
      policy_(random_policy()),
      options_(random_options()),
      stream_(random_, 1 + random_.below(80),
              options_.order == order::key || form_ < form::parallel) {
  testing::daemon_options with;
  with.seed = static_cast<std::uint32_t>(random_.next());
  log_.note([&] {
    return "form " + std::to_string(static_cast<int>(form_)) + ", attempts " +
           std::to_string(policy_.attempts) + ", exhausted " +
           std::to_string(static_cast<int>(policy_.exhausted)) + ", lanes " +
           std::to_string(options_.lanes) + ", window " + std::to_string(options_.window_records) +
           " records, " + std::to_string(options_.window_bytes) + " bytes, stuck after " +
           std::to_string(options_.stuck_after.count()) + " ms";
  });
  daemon_.emplace(make_form(), random_run_options(random_), with);
}

shard_run::~shard_run() { daemon_.reset(); }

failure_policy shard_run::random_policy() {
  failure_policy policy;
  policy.attempts = static_cast<int>(random_.below(6));  // 0: without end
  policy.initial_backoff = milliseconds(random_.below(1000));
  policy.max_backoff = milliseconds(random_.below(8000));
  policy.exhausted = static_cast<exhausted>(random_.below(3));
  if (random_.chance(70)) policy.flood.window = 0;
  policy.lot = std::make_shared<lot>(*this, random_.chance(50) ? 0 : 40);
  return policy;
}

parallel_options shard_run::random_options() {
  parallel_options options;
  options.lanes = 1 + random_.below(64);
  options.order = random_.chance(70) ? order::key : order::none;
  options.window_records = 1 + random_.below(random_.chance(50) ? 8 : 200);
  if (random_.chance(20)) options.window_bytes = 1 + random_.below(20);
  options.drain_timeout = milliseconds(random_.below(20000));
  options.stuck_after = milliseconds(random_.below(4000));
  return options;
}

processor_factory shard_run::make_form() {
  const auto one_by_one = [this](const record& one, const shard_context& shard) {
    process(one, shard);
  };
  switch (form_) {
    case form::each:
      return each(one_by_one, policy_);
    case form::batches:
    case form::batches_with_position:
      return batches(
          [this](record_batch batch, const shard_context& shard) { process_batch(batch, shard); },
          policy_);
    case form::parallel:
      return parallel(record_handler(one_by_one), policy_, options_);
    case form::completions:
      return parallel(async_record_handler([this](const shard_context& shard) {
                        return starter{this, &shard, shard.service()->make_thread_pool(1)};
                      }),
                      policy_, options_);
  }
  std::abort();
}

meetings& shard_run::met() {
  static meetings all({"a handler fails", "a handler fails for good", "a handler is fenced",
                       "a record cannot be parked", "a completion is dropped",
                       "the child is killed", "the lease is lost", "the lease is lost silently",
                       "a shutdown is requested", "the input ends in a callback",
                       "a checkpoint will be refused", "a dead child's completion is reported"},
                      {"each", "batches", "batches that tell the position", "parallel",
                       "completions", "a handler runs", "a record waits for its next attempt",
                       "a record waits to be parked", "a record is parked", "a record is skipped",
                       "the window is full", "the lease was lost silently"});
  return all;
}

void shard_run::note(fault what) const {
  const auto count = [&](std::size_t state) { met().count(static_cast<std::size_t>(what), state); };
  const auto has = [&](auto predicate) { return stream_.has(predicate); };
  using end = planned_record::end;
  using plan = const planned_record&;
  const auto is_left = [](plan one) { return one.how == end::none && !one.is_in_progress; };
  count(static_cast<std::size_t>(form_));
  if (has([](plan one) { return one.is_in_progress; })) count(5);
  if (has([&](plan one) { return is_left(one) && one.failed > 0; })) count(6);
  if (has([&](plan one) { return is_left(one) && one.failed_parkings > 0; })) count(7);
  if (has([](plan one) { return one.how == end::parked; })) count(8);
  if (has([](plan one) { return one.how == end::skipped; })) count(9);
  const auto windows = options_.monitor.states();
  const bool has_window = windows.size() > killed_;
  if (has_window && windows.back().window_size >= options_.window_records) count(10);
  if (is_lease_lost_) count(11);
}

template <class Body>
void shard_run::guarded(Body body) noexcept {
  try {
    body();
  } catch (const violation& what) {
    if (violated_.empty()) violated_ = what.what();
  }
}

void shard_run::begin(const record& one, const shard_context& shard, bool is_first) {
  if (++calls_ > most_calls) {  // in a callback that never returns, nothing else ends it
    std::cout << "seed 0: stuck: handlers are called without end\n" << std::flush;
    std::_Exit(EXIT_FAILURE);
  }
  log_.note([&] { return "  handler: record " + std::string(one.data()); });
  guarded([&] {
    if (shard.stop_token().stop_requested()) {
      throw violation("stop: record " + std::string(one.data()) + " comes after the stop token");
    }
    absorb_log();
    stream_.begin(one, is_first);
  });
}

void shard_run::throw_if_it_fails(const record& one) {
  planned_record& plan = stream_.of(one);
  if (is_calm_ || plan.failures == 0) return;
  if (random_.chance(1)) {
    note(fault::fenced);
    was_fenced_ = true;
    stream_.interrupt(one);
    throw fenced_error("another worker");
  }
  if (policy_.attempts == 0 && plan.failed == patience) return;
  note(plan.is_permanent ? fault::failed_permanently : fault::failed);
  if (plan.failures > 0) --plan.failures;
  guarded([&] { stream_.fail(one, policy_.attempts); });
  if (plan.is_permanent) throw permanent_error("permanent");
  if (random_.chance(30)) throw 1;  // NOLINT: the kind of exception changes between attempts
  throw std::runtime_error("failed");
}

void shard_run::process(const record& one, const shard_context& shard) {
  begin(one, shard, true);
  const planned_record& plan = stream_.of(one);
  if (plan.time.count() > 0 && !shard.sleep_for(plan.time)) {
    stream_.interrupt(one);
    return;
  }
  throw_if_it_fails(one);
  guarded([&] { stream_.end(one, planned_record::end::succeeded); });
}

/// Effects come at the end: what precedes a failure has its effect only if the position is
/// reported.
void shard_run::process_batch(const record_batch& batch, const shard_context& shard) {
  guarded([&] { absorb_log(); });
  const bool tells = form_ == form::batches_with_position && random_.chance(80);
  const auto succeed = [&](std::size_t count) {
    for (const record& one : batch.slice(0, count)) {
      guarded([&] { stream_.end(one, planned_record::end::succeeded); });
    }
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    begin(batch[i], shard, i == 0);
    stream_.interrupt(batch[i]);
    planned_record& plan = stream_.of(batch[i]);
    if (plan.time.count() > 0 && !shard.sleep_for(plan.time)) return;
    const bool is_blamed = tells || batch.size() == 1;
    if (!is_blamed && !is_calm_ && plan.failures != 0) throw std::runtime_error("somewhere");
    try {
      throw_if_it_fails(batch[i]);
    } catch (...) {
      succeed(tells ? i : 0);
      if (!tells) throw;
      throw batch_failure(batch[i].position(), std::current_exception());
    }
  }
  succeed(batch.size());
}

void shard_run::start(completion one, const shard_context& shard, thread_pool& pool) {
  begin(one.record(), shard, true);
  const milliseconds time = stream_.of(one.record()).time;
  taken_.push_back(std::move(one));
  shard_ = &shard;
  // Some are reported while the daemon does something else.
  if (!is_calm_ && can_wait_ && random_.chance(50)) return;
  pool.post([this, &shard, time] {
    shard.sleep_for(time);
    settle_one(shard);
  });
}

/// Completions are reported in any order.
void shard_run::settle_one(const shard_context& shard) {
  if (taken_.empty()) return;
  const auto at = taken_.begin() + static_cast<std::ptrdiff_t>(random_.below(taken_.size()));
  completion one = std::move(*at);
  taken_.erase(at);
  if (random_.chance(20)) one.touch();
  if (shard.stop_token().stop_requested()) return stream_.interrupt(one.record());
  try {
    throw_if_it_fails(one.record());
  } catch (...) {
    if (!random_.chance(20)) return one.fail();
    if (stream_.of(one.record()).is_permanent) return one.fail();
    note(fault::dropped);
    return;
  }
  guarded([&] { stream_.end(one.record(), planned_record::end::succeeded); });
  one.complete();
}

void shard_run::settle_all() {
  while (!taken_.empty()) settle_one(*shard_);
}

void shard_run::absorb_log() {
  const auto& lines = daemon_->log();
  for (; log_read_ < lines.size(); ++log_read_) {
    log_.note([&] { return "  log: " + lines[log_read_].text; });
    stream_.read_log(lines[log_read_].text);
  }
}

bool shard_run::is_alive() const { return !is_killed_ && !daemon_->exit_status(); }

run_length shard_run::run() {
  const auto began = daemon_->now();
  const auto length = [&] { return run_length{calls_, daemon_->now() - began}; };
  try {
    daemon_->initialize();
    for (int child = 1; child < most_children; ++child) {
      while (is_alive() && !random_.chance(3)) take_step();
      end_life();
      if (daemon_->persisted() == sequence_position("SHARD_END")) return length();
      is_calm_ = child + 1 == most_children;
      start_next();
    }
    finish();
  } catch (const violation&) {
    throw;
  } catch (const std::logic_error& error) {  // the test kit: nothing can continue the dialogue
    throw violation(std::string("stuck: ") + error.what());
  }
  return length();
}

void shard_run::take_step() {
  const std::uint64_t choice = random_.below(100);
  if (choice < 50) {
    deliver();
  } else if (choice < 75) {
    log_.note([] { return std::string("time passes"); });
    daemon_->advance(milliseconds(random_.below(4000)));
  } else if (choice < 80) {
    daemon_->deliver({});
  } else if (choice < 86) {
    const char* const error =
        random_.chance(70) ? "ThrottlingException" : "KinesisClientLibDependencyException";
    note(fault::checkpoint_refused);
    daemon_->fail_next_checkpoint(error, static_cast<int>(1 + random_.below(3)));
  } else if (choice < 88) {
    log_.note([] { return std::string("the lease is lost silently"); });
    note(fault::lease_lost_silently);
    is_lease_lost_ = true;
    daemon_->lose_lease_silently();
  } else if (choice < 91) {
    log_.note([] { return std::string("the input will end in the next callback"); });
    note(fault::input_ends);
    daemon_->end_input_in_next_callback();
    deliver();
  } else if (choice < 97 && !taken_.empty()) {
    settle_one(*shard_);
  } else if (!of_dead_children_.empty()) {  // reports that come too late
    completion late = std::move(of_dead_children_.back());
    of_dead_children_.pop_back();
    note(fault::late_report);
    if (random_.chance(50)) late.complete();
  }
  check();
}

void shard_run::deliver() {
  const std::size_t count = 1 + random_.below(20);
  // On one thread a callback that waits for a completion would wait indefinitely.
  can_wait_ = has_room_for(count);
  if (!can_wait_) settle_all();
  const auto records = stream_.take(count);
  log_.note([&] { return std::to_string(records.size()) + " records are delivered"; });
  daemon_->deliver_records(records);
}

bool shard_run::has_room_for(std::size_t records) const {
  const auto windows = options_.monitor.states();
  const std::size_t held = windows.size() > killed_ ? windows.back().window_size : 0;
  return options_.window_bytes > 1000 && held + records < options_.window_records;
}

/// The child ends in one of the ways in which it can.
void shard_run::end_life() {
  if (is_alive()) {
    switch (random_.below(5)) {
      case 0:
        log_.note([] { return std::string("the child is killed"); });
        note(fault::killed);
        is_killed_ = true;
        ++killed_;
        daemon_->crash();
        break;
      case 1:
        log_.note([] { return std::string("the lease is lost"); });
        note(fault::lease_lost);
        daemon_->lose_lease();
        check_empty_window();
        break;
      case 2:
        log_.note([] { return std::string("a shutdown is requested"); });
        note(fault::shutdown_requested);
        daemon_->request_shutdown();
        break;
      case 3:
        if (!stream_.is_all_delivered()) break;
        log_.note([] { return std::string("the shard ends"); });
        can_wait_ = false;
        settle_all();
        daemon_->end_shard();
        break;
      default:
        break;
    }
    check();
  }
  if (is_alive()) daemon_->end_input();
  check();
  check_end();
}

void shard_run::start_next() {
  stream_.end_child();
  for (completion& one : taken_) of_dead_children_.push_back(std::move(one));
  taken_.clear();
  is_killed_ = was_fenced_ = is_lease_lost_ = can_wait_ = false;
  log_.note([&] { return "--- the next child, after " + to_string(daemon_->persisted()); });
  daemon_->resume();
  // Those that were killed are kept as they were.
  if (options_.monitor.states().size() > killed_ + 1) {
    throw violation("window: that of a child is left");
  }
  check();
}

/// Of a living child that has lost its lease; those of children that were killed precede it.
void shard_run::check_empty_window() {
  const auto states = options_.monitor.states();
  if (!is_alive() || states.size() <= killed_) return;
  const window_state& last = states.back();
  if (last.records > 0 || last.bytes > 0 || last.window_size > 0 || last.oldest) {
    throw violation("window: " + std::to_string(last.window_size) +
                    " records are left when the lease is lost");
  }
}

/// The last child: without faults.
void shard_run::finish() {
  while (!stream_.is_all_delivered()) {
    deliver();
    check();
  }
  daemon_->end_shard();
  check();
  if (is_alive()) daemon_->end_input();
  check();
  check_end();
  if (daemon_->persisted() != sequence_position("SHARD_END")) {
    throw violation("end: a child without faults did not finish the shard");
  }
}

void shard_run::check() {
  guarded([&] {
    absorb_log();
    stream_.check(daemon_->persisted());
  });
  if (!violated_.empty()) throw violation(violated_);
}

/// How the child left.
void shard_run::check_end() {
  const auto status = daemon_->exit_status();
  log_.note([&] {
    return status ? "the child left with " + std::to_string(static_cast<int>(*status))
                  : std::string("the child is dead");
  });
  if (!status) return;
  const bool may_fail =
      policy_.exhausted == exhausted::stop || policy_.flood.window > 0 || was_fenced_;
  const bool is_explained = *status == exit_status::ok || *status == exit_status::daemon_gone ||
                            *status == exit_status::shard_end_failed ||
                            (*status == exit_status::callback_failed && may_fail && !is_calm_);
  if (!is_explained) {
    throw violation("exit: status " + std::to_string(static_cast<int>(*status)));
  }
}

}  // namespace kclxx::simulation
