// SPDX-License-Identifier: Apache-2.0
// What the daemon does in one life.
#include <algorithm>
#include <deque>
#include <sstream>
#include <utility>

#include "base/overloaded.hpp"
#include "simulation/life.hpp"

namespace kclxx::simulation {

using protocol::action_kind;

namespace {

template <class Printable>
std::string text_of(const Printable& one) {
  std::ostringstream out;
  out << one;
  return out.str();
}

}  // namespace

void life::call_something() {
  using daemon_model::kcl_version;
  const auto& faults = world_.faults;
  if (consumer_.can_call(action_kind::initialize)) {
    return call(action_kind::initialize,
                daemon_model::initialize_line("shardId-000000000000", start_), "initialize",
                std::nullopt);
  }
  if (with_faults_ && random_.chance(faults.unknown_action)) {
    note(fault::unknown_action);
    return call(action_kind::process_records, R"({"action":"tuneUp","level":3})", "tuneUp",
                std::nullopt);
  }
  // A lease that is lost is found out sooner or later.
  if (lease_.is_lost() && random_.chance(50)) {
    return call(action_kind::lease_lost, daemon_model::action_line(action_kind::lease_lost),
                "leaseLost", std::nullopt);
  }
  const bool all_delivered = delivered_ == world_.records.size();
  if (consumer_.can_call(action_kind::shutdown_requested) &&
      ((with_faults_ && random_.chance(faults.shutdown_request)) ||
       (all_delivered && !world_.has_end))) {
    note(fault::shutdown_is_requested);
    return call(action_kind::shutdown_requested,
                daemon_model::action_line(action_kind::shutdown_requested), "shutdownRequested",
                std::nullopt);
  }
  if (!consumer_.can_call(action_kind::process_records)) {  // after shutdownRequested
    if (random_.chance(50)) {
      return call(action_kind::lease_lost, daemon_model::action_line(action_kind::lease_lost),
                  "leaseLost", std::nullopt);
    }
    daemon_model::daemon_events happened;
    consumer_.close(happened);
    return take(happened);
  }
  if (all_delivered && world_.has_end && random_.chance(70)) {
    return call(action_kind::shard_ended, daemon_model::action_line(action_kind::shard_ended),
                "shardEnded", std::nullopt);
  }
  const std::size_t count =
      std::min<std::size_t>(random_.below(6), world_.records.size() - delivered_);
  std::vector<record> batch;
  std::deque<std::string> numbers;
  for (std::size_t i = delivered_; i < delivered_ + count; ++i) {
    const sequence_position& at = world_.records[i];
    batch.emplace_back(record::fields{.data = "x",
                                      .partition_key = "k",
                                      .sequence_number = numbers.emplace_back(at.sequence_number()),
                                      .sub_sequence_number = at.sub_sequence_number()});
  }
  delivered_ += count;
  const auto largest = count > 0 ? std::optional(batch.back().position()) : std::nullopt;
  call(action_kind::process_records, daemon_model::process_records_line(batch, 0), "processRecords",
       largest);
}

void life::call(action_kind what, const std::string& line, const std::string& action,
                const std::optional<sequence_position>& largest) {
  log_.note([&] { return "daemon: " + line; });
  to_child_.push_back(line);
  daemon_model::daemon_events happened;
  consumer_.call(what, action, largest, happened);
  take(happened);
}

void life::daemon_reads() {
  const std::string line = std::move(to_daemon_.front());
  to_daemon_.pop_front();
  daemon_model::daemon_events happened;
  consumer_.on_line(line, happened);
  take(happened);
}

void life::daemon_sees_end() {
  daemon_has_seen_end_ = true;
  daemon_model::daemon_events happened;
  consumer_.on_end_of_output(happened);
  take(happened);
  // Between two calls the daemon does not notice, until the next one.
  if (consumer_.is_closed()) daemon_gone_ = true;
}

void life::take(const daemon_model::daemon_events& happened) {
  using namespace daemon_model;
  for (const daemon_event& one : happened) {
    log_.note([&] { return "  daemon: " + text_of(one); });
    std::visit(overloaded{
                   [&](const answered& a) { take(a); },
                   [&](const skipped& s) {
                     throw violation("bytes: the daemon skipped a line (" + s.why + "): " + s.line);
                   },
                   [&](const returned&) {},
                   [&](const failed& f) {
                     if (!child_gone_) throw violation("status: " + f.why);
                   },
                   [&](const shard_end_not_checkpointed&) {
                     if (!lease_.is_lost()) {
                       throw violation(
                           "end: success was reported without a checkpoint at the shard's end");
                     }
                   },
                   [&](const close_input&) { end_child_input(false); },
                   [&](const lost_line& l) {
                     // Only a daemon that closes in mid-call leaves something unread.
                     if (consumer_.has_worker_ended() && !child_gone_) {
                       throw violation("status: nobody reads " + l.line);
                     }
                   },
                   [&](const worker_ended& w) {
                     if (!child_gone_) throw violation("status: " + w.why);
                     if (driver_.status() == exit_status::ok) {
                       throw violation(
                           "status: the child left with 0 in the middle of an action: " + w.why);
                     }
                   },
               },
               one);
  }
  if (consumer_.is_closed() && daemon_has_seen_end_) daemon_gone_ = true;
}

void life::take(const daemon_model::answered& answer) {
  if (answer.error) note(fault::checkpoint_is_refused);
  if (answer.error && !answer.attempted) {
    throw violation("range: " + answer.line);
  }
  if (answer.attempted && !answer.error) {
    world_.persist(*answer.attempted, processor_.complete(), processor_.may_finish());
  }
  to_child_.push_back(answer.line);
}

void life::end_child_input(bool unfinished_line) {
  input_ended_ = true;
  unfinished_line_ = unfinished_line;
}

}  // namespace kclxx::simulation
