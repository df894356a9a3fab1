// SPDX-License-Identifier: Apache-2.0
#include "simulation/daemon.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.hpp"
#include "daemon_model/lines.hpp"
#include "simulation/life.hpp"

namespace kclxx::simulation {

using protocol::action_kind;

daemon::daemon(world& world, random_source& random, bool with_faults, trace& log, life& owner)
    : world_(world),
      random_(random),
      with_faults_(with_faults),
      log_(log),
      life_(owner),
      start_(world.persisted),
      lease_(world.lease.take_over()),
      consumer_(lease_),
      sent_(world.resume_index()) {
  if (!with_faults_) return;
  lease_.set_fault([this](const sequence_position&) -> std::optional<std::string> {
    if (random_.chance(world_.faults.throttle)) {
      return random_.chance(50) ? "ThrottlingException" : "KinesisClientLibDependencyException";
    }
    if (random_.chance(world_.faults.fatal)) {
      return random_.chance(50) ? "InvalidStateException" : "SomethingNewException";
    }
    if (random_.chance(world_.faults.lease_stolen)) return "ShutdownException";
    return std::nullopt;
  });
}

void daemon::call_something() {
  const auto& faults = world_.faults;
  if (consumer_.can_call(action_kind::initialize)) {
    return call(action_kind::initialize,
                daemon_model::initialize_line("shardId-000000000000", start_), "initialize");
  }
  if (with_faults_ && random_.chance(faults.unknown_action)) {
    life_.note(fault::unknown_action);
    return call(action_kind::process_records, R"({"action":"tuneUp","level":3})", "tuneUp");
  }
  // A lease that is lost is found out sooner or later.
  if (is_lease_lost() && random_.chance(50)) return call(action_kind::lease_lost);
  const bool all_sent = sent_ == world_.records.size();
  if (consumer_.can_call(action_kind::shutdown_requested) &&
      ((with_faults_ && random_.chance(faults.shutdown_request)) ||
       (all_sent && !world_.has_end))) {
    life_.note(fault::shutdown_is_requested);
    return call(action_kind::shutdown_requested);
  }
  if (!consumer_.can_call(action_kind::process_records)) {  // after shutdownRequested
    return random_.chance(50) ? call(action_kind::lease_lost) : stop_worker();
  }
  if (all_sent && world_.has_end && random_.chance(70)) {
    return call(action_kind::shard_ended);
  }
  send_records();
}

void daemon::call(action_kind what) {
  call(what, daemon_model::action_line(what), protocol::action_name(what));
}

void daemon::send_records() {
  const std::size_t count = std::min<std::size_t>(random_.below(6), world_.records.size() - sent_);
  std::vector<record> batch;
  std::deque<std::string> numbers;
  for (std::size_t i = sent_; i < sent_ + count; ++i) {
    const sequence_position& position = world_.records[i];
    batch.emplace_back(
        record::fields{.data = "x",
                       .partition_key = "k",
                       .sequence_number = numbers.emplace_back(position.sequence_number()),
                       .sub_sequence_number = position.sub_sequence_number()});
  }
  sent_ += count;
  const auto largest = count > 0 ? std::optional(batch.back().position()) : std::nullopt;
  call(action_kind::process_records, daemon_model::process_records_line(batch, 0), "processRecords",
       largest);
}

void daemon::call(action_kind what, const std::string& line, std::string_view action,
                  const std::optional<sequence_position>& largest) {
  log_.note([&] { return "daemon: " + line; });
  life_.write_to_child(line);
  daemon_model::daemon_events happened;
  consumer_.call(what, action, largest, happened);
  take(happened);
}

bool daemon::can_read() const {
  return !is_gone_ && (!unread_.empty() || (life_.is_child_gone() && !has_seen_end_));
}

void daemon::read() {
  daemon_model::daemon_events happened;
  if (unread_.empty()) {
    has_seen_end_ = true;
    consumer_.on_end_of_output(happened);
  } else {
    const std::string line = std::move(unread_.front());
    unread_.pop_front();
    consumer_.on_line(line, happened);
  }
  take(happened);
}

void daemon::stop_worker() {
  daemon_model::daemon_events happened;
  consumer_.close(happened);
  take(happened);
}

void daemon::die(bool unfinished_line) {
  is_gone_ = true;
  life_.close_child_input(unfinished_line);
}

void daemon::receive(const std::string& line) {
  if (!is_gone_) unread_.push_back(line);
}

void daemon::take(const daemon_model::daemon_events& happened) {
  using namespace daemon_model;
  for (const daemon_event& one : happened) {
    log_.note([&] { return "  daemon: " + to_string(one); });
    std::visit(overloaded{
                   [&](const answered& a) { take(a); },
                   [&](const skipped& s) {
                     throw violation("bytes: the daemon skipped a line (" + s.why + "): " + s.line);
                   },
                   [&](const returned&) {},
                   [&](const failed& f) {
                     if (!life_.is_child_gone()) throw violation("status: " + f.why);
                   },
                   [&](const shard_end_not_checkpointed&) {
                     if (!is_lease_lost()) {
                       throw violation(
                           "end: success was reported without a checkpoint at the shard's end");
                     }
                   },
                   [&](const close_input&) { life_.close_child_input(false); },
                   [&](const lost_line& l) {
                     // Only a daemon that closes in mid-call leaves something unread.
                     if (consumer_.has_worker_ended() && !life_.is_child_gone()) {
                       throw violation("status: nobody reads " + l.line);
                     }
                   },
                   [&](const worker_ended& w) {
                     if (!life_.is_child_gone()) throw violation("status: " + w.why);
                     if (life_.has_child_succeeded()) {
                       throw violation(
                           "status: the child left with 0 in the middle of an action: " + w.why);
                     }
                   },
               },
               one);
  }
  // Between two calls the daemon does not notice the end, until the next one.
  if (consumer_.is_closed() && has_seen_end_) is_gone_ = true;
}

void daemon::take(const daemon_model::answered& answer) {
  if (answer.error) life_.note(fault::checkpoint_is_refused);
  if (answer.error && !answer.attempted) {
    throw violation("range: " + answer.line);
  }
  if (answer.attempted && !answer.error) life_.persisted(*answer.attempted);
  life_.write_to_child(answer.line);
}

}  // namespace kclxx::simulation
