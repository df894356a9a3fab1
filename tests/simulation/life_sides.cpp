// SPDX-License-Identifier: Apache-2.0
// What the daemon and the child do in one life.
#include <algorithm>
#include <deque>
#include <memory>
#include <sstream>
#include <utility>

#include "base/overloaded.hpp"
#include "protocol/encoder.hpp"
#include "simulation/life.hpp"

namespace kclxx::simulation {

using daemon_model::call_kind;

namespace {

template <class Printable>
std::string text_of(const Printable& one) {
  std::ostringstream out;
  out << one;
  return out.str();
}

/// A decoded batch, and what its views point into.
struct decoded {
  std::string line;
  std::vector<record> records;
  std::deque<std::string> arena;
};

}  // namespace

// --- The daemon ---

void life::call_something() {
  using daemon_model::generation;
  const auto& faults = world_.faults;
  if (consumer_.can_call(call_kind::initialize)) {
    return call(call_kind::initialize,
                daemon_model::initialize_line("shardId-000000000000", world_.persisted),
                "initialize", std::nullopt);
  }
  if (with_faults_ && random_.chance(faults.unknown_action)) {
    return call(call_kind::process_records, R"({"action":"tuneUp","level":3})", "tuneUp",
                std::nullopt);
  }
  // A lease that is lost is found out sooner or later.
  if (lease_.is_lost() && random_.chance(50)) {
    return call(call_kind::lease_lost, daemon_model::lease_lost_line(generation::v3), "leaseLost",
                std::nullopt);
  }
  const bool all_delivered = delivered_ == world_.records.size();
  if (consumer_.can_call(call_kind::shutdown_requested) &&
      ((with_faults_ && random_.chance(faults.shutdown_request)) ||
       (all_delivered && !world_.has_end))) {
    return call(call_kind::shutdown_requested, daemon_model::shutdown_requested_line(),
                "shutdownRequested", std::nullopt);
  }
  if (!consumer_.can_call(call_kind::process_records)) {  // behind shutdownRequested
    if (random_.chance(50)) {
      return call(call_kind::lease_lost, daemon_model::lease_lost_line(generation::v3), "leaseLost",
                  std::nullopt);
    }
    daemon_model::happenings happened;
    consumer_.close(happened);
    return take(happened);
  }
  if (all_delivered && world_.has_end && random_.chance(70)) {
    return call(call_kind::shard_ended, daemon_model::shard_ended_line(generation::v3),
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
  call(call_kind::process_records, daemon_model::process_records_line(batch, 0), "processRecords",
       largest);
}

void life::call(call_kind what, const std::string& line, const std::string& action,
                const std::optional<sequence_position>& largest) {
  log_.note([&] { return "daemon: " + line; });
  to_child_.push_back(line);
  daemon_model::happenings happened;
  consumer_.call(what, action, largest, happened);
  take(happened);
}

void life::daemon_reads() {
  const std::string line = std::move(to_daemon_.front());
  to_daemon_.pop_front();
  daemon_model::happenings happened;
  consumer_.on_line(line, happened);
  take(happened);
}

void life::daemon_sees_end() {
  daemon_has_seen_end_ = true;
  daemon_model::happenings happened;
  consumer_.on_end_of_output(happened);
  take(happened);
  // Between two calls the daemon does not notice, until the next one.
  if (consumer_.is_closed()) daemon_gone_ = true;
}

void life::take(const daemon_model::happenings& happened) {
  using namespace daemon_model;
  for (const happening& one : happened) {
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
                     if (left_with_ == exit_status::ok) {
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
  if (answer.error && !answer.attempted) {
    throw violation("range: " + answer.line);
  }
  if (answer.attempted && !answer.error) {
    world_.persist(*answer.attempted, processor_.done(), processor_.may_finish());
  }
  to_child_.push_back(answer.line);
}

void life::end_child_input(bool unfinished_line) {
  input_ended_ = true;
  unfinished_line_ = unfinished_line;
}

// --- The child ---

void life::child_reads() {
  if (to_child_.empty()) {
    child_has_seen_end_ = true;
    return feed([&](auto& out) { session_.on_end_of_input(unfinished_line_, now_, out); });
  }
  if (with_faults_ && random_.chance(world_.faults.damaged_line)) {
    to_child_.pop_front();
    return feed([&](auto& out) { session_.on_bad_line("not JSON", out); });
  }
  auto memory = std::make_shared<decoded>();
  memory->line = std::move(to_child_.front());
  to_child_.pop_front();
  const std::size_t length = memory->line.size();
  memory->line.resize(length + protocol::decoder::padding);
  bool replaced = false;
  auto result =
      decoder_.decode(memory->line.data(), length, memory->records, memory->arena, replaced);
  auto& message = std::get<protocol::message>(result);
  if (std::holds_alternative<protocol::checkpoint_answer>(message.body)) {
    --unanswered_;
  } else {
    may_write_ = true;
  }
  const record_batch batch(memory->records, memory);
  feed([&](auto& out) { session_.on_message(std::move(message), batch, now_, out); });
}

void life::carry_out(session::actions& decided) {
  for (session::action& what : decided) {
    log_.note([&] { return "  child: " + text_of(what); });
    if (left_with_) throw violation("end: something follows the end: " + text_of(what));
    carry_out(what);
  }
  if (std::exchange(output_broken_, false) && !left_with_) {
    feed([&](auto& out) { session_.on_output_broken("broken pipe", out); });
  }
}

void life::carry_out(session::action& one) {
  std::visit(overloaded{
                 [&](session::write_checkpoint& what) {
                   if (++unanswered_ > 1) {
                     throw violation("order: two checkpoints are unanswered");
                   }
                   std::string text;
                   protocol::append_checkpoint(text, what.position.is_number()
                                                         ? std::optional(what.position)
                                                         : std::nullopt);
                   write(text);
                 },
                 [&](session::write_status& what) {
                   std::string text;
                   protocol::append_status(text, what.action);
                   write(text);
                   may_write_ = false;
                 },
                 [&](session::call& what) { processor_.begin(what); },
                 [&](session::complete& what) { processor_.completed(what); },
                 [&](session::arm_timer& what) {
                   timers_[static_cast<std::size_t>(what.which)] = now_ + what.after;
                 },
                 [&](session::log_line&) {},
                 [&](session::pause_reading&) { is_paused_ = true; },
                 [&](session::resume_reading&) { is_paused_ = false; },
                 [&](session::request_stop&) {
                   if (stop_fired_) throw violation("stop: the stop token fired twice");
                   stop_fired_ = true;
                   processor_.stop();
                 },
                 [&](session::leave& what) {
                   left_with_ = what.status;
                   child_is_gone();
                 },
             },
             one);
}

void life::write(const std::string& text) {
  if (!may_write_) throw violation("order: the child writes while no action is open: " + text);
  if (daemon_gone_) {
    output_broken_ = true;
    return;
  }
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    to_daemon_.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void life::fire_timer() {
  const std::size_t which = !timers_[1] || (timers_[0] && *timers_[0] <= *timers_[1]) ? 0 : 1;
  now_ = std::max(now_, *timers_[which]);
  timers_[which].reset();
  feed([&](auto& out) { session_.on_timer(static_cast<session::timer>(which), now_, out); });
}

void life::child_is_gone() {
  child_gone_ = true;
  to_child_.clear();
}

}  // namespace kclxx::simulation
