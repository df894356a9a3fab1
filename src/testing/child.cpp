// SPDX-License-Identifier: Apache-2.0
#include "testing/child.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/error.hpp>

#include "protocol/encoder.hpp"

namespace kclxx::testing {

namespace {

/// What a batch lives in: its line, decoded in place, and the views into it.
struct batch_memory {
  std::vector<char> line;
  std::vector<record> records;
  std::deque<std::string> arena;
};

}  // namespace

/// User code: called when all that was decided is carried out, since it may call back.
struct child::effects {
  std::vector<session::log_line> logs;
  bool stop = false;
  bool left = false;
};

child::child(configuration with, std::shared_ptr<virtual_clock> clock, std::shared_ptr<usage> usage,
             surroundings around)
    : with_(std::move(with)),
      clock_(std::move(clock)),
      usage_(std::move(usage)),
      around_(std::move(around)),
      session_(with_.options, false, with_.seed),
      host_(with_.make_processor, [this] {
        shard_context::fields fields = with_.context;
        fields.stop_token = stop_.get_token();
        fields.now = [clock = clock_] { return clock->now(); };
        return fields;
      }) {}

template <class Event>
void child::turn(Event event) {
  session::actions decided;
  event(decided);
  effects after;
  for (session::action& one : decided) carry_out(one, after);
  write_lines();
  for (const session::log_line& line : after.logs) around_.log(line.level, line.text);
  if (after.stop) stop_.request_stop();
  if (after.left) around_.left(*status_);
}

void child::carry_out(session::action& one, effects& after) {
  if (const auto* checkpoint = std::get_if<session::write_checkpoint>(&one)) {
    const auto& at = checkpoint->position;
    protocol::append_checkpoint(lines_, at.is_number() ? std::optional(at) : std::nullopt);
  } else if (const auto* status = std::get_if<session::write_status>(&one)) {
    protocol::append_status(lines_, status->action);
  } else if (auto* call = std::get_if<session::call>(&one)) {
    call_ = std::move(*call);
  } else if (auto* done = std::get_if<session::complete>(&one)) {
    const auto found = waiting_.find(done->waiter);
    if (found != waiting_.end()) found->second = result{done->result, std::move(done->name)};
  } else if (const auto* timer = std::get_if<session::arm_timer>(&one)) {
    timers_.at(static_cast<std::size_t>(timer->which)) = clock_->now() + timer->after;
  } else if (auto* line = std::get_if<session::log_line>(&one)) {
    after.logs.push_back(std::move(*line));
  } else if (std::holds_alternative<session::pause_reading>(one)) {
    is_paused_ = true;
  } else if (std::holds_alternative<session::resume_reading>(one)) {
    is_paused_ = false;
  } else if (std::holds_alternative<session::request_stop>(one)) {
    after.stop = true;
  } else if (const auto* leave = std::get_if<session::leave>(&one)) {
    write_lines();
    status_ = leave->status;
    call_.reset();
    timers_ = {};
    after.left = true;
  }
}

void child::write_lines() {
  const std::string written = std::exchange(lines_, {});
  for (std::size_t begin = 0; begin < written.size();) {
    const std::size_t end = written.find('\n', begin);
    around_.written(std::string_view(written).substr(begin, end - begin));
    begin = end + 1;
  }
}

void child::settle() {
  while (!status_ && !is_killed_) {
    if (!unread_.empty() && !is_paused_) {
      const std::string line = std::move(unread_.front());
      unread_.pop_front();
      read(line);
    } else if (unread_.empty() && std::exchange(has_input_ended_, false)) {
      turn([&](auto& out) { session_.on_end_of_input(false, clock_->now(), out); });
    } else {
      return;
    }
  }
}

void child::read(const std::string& line) {
  if (line.size() > with_.options.max_line_length) {
    turn([&](auto& out) {
      session_.on_bad_line("bad line from the daemon: it is longer than the limit of " +
                               std::to_string(with_.options.max_line_length) +
                               " bytes (run_options::max_line_length)",
                           out);
    });
    return;
  }
  auto memory = std::make_shared<batch_memory>();
  memory->line.resize(line.size() + protocol::decoder::padding);
  std::memcpy(memory->line.data(), line.data(), line.size());
  bool replaced_invalid_utf8 = false;
  auto decoded = decoder_.decode(memory->line.data(), line.size(), memory->records, memory->arena,
                                 replaced_invalid_utf8);
  if (const auto* error = std::get_if<protocol::decode_error>(&decoded)) {
    turn([&](auto& out) {
      session_.on_bad_line("bad line from the daemon: " + error->field + " " + error->what, out);
    });
    return;
  }
  auto& message = std::get<protocol::message>(decoded);
  record_batch batch;
  if (const auto* records = std::get_if<protocol::process_records>(&message.body)) {
    const std::span<const record> views(memory->records);
    batch = record_batch(views, std::move(memory), records->millis_behind_latest);
  }
  turn([&](auto& out) {
    session_.on_message(std::move(message), std::move(batch), clock_->now(), out);
  });
}

bool child::run_next_callback() {
  if (!call_) return false;
  std::optional<session::call> call = std::exchange(call_, std::nullopt);
  is_in_callback_ = true;
  patience_ = clock_->now() + session::callback_patience;
  std::optional<std::string> failure;
  try {
    around_.callback_begins(call->what);
    checkpointer handle(shared_from_this());
    host_.run(*call, handle);
  } catch (const std::exception& error) {
    thrown_ = std::current_exception();
    failure = error.what();
  } catch (...) {
    thrown_ = std::current_exception();
    failure = "an exception that is not a std::exception";
  }
  call.reset();
  is_in_callback_ = false;
  patience_.reset();
  turn([&](auto& out) {
    if (failure) {
      session_.on_callback_threw(*failure, clock_->now(), out);
    } else {
      session_.on_callback_returned(clock_->now(), out);
    }
  });
  return true;
}

std::optional<child::time_point> child::next_timer() const {
  std::optional<time_point> first = patience_;
  for (const auto& one : timers_) {
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

void child::fire_timers() {
  if (patience_ && *patience_ <= clock_->now()) {
    patience_.reset();
    turn([&](auto& out) { session_.on_callback_lasts(clock_->now(), out); });
  }
  for (const session::timer which : {session::timer::retry, session::timer::grace}) {
    auto& one = timers_.at(static_cast<std::size_t>(which));
    if (!one || *one > clock_->now()) continue;
    one.reset();
    turn([&](auto& out) { session_.on_timer(which, clock_->now(), out); });
  }
}

void child::kill() {
  is_killed_ = true;
  stop_.request_stop();  // for threads that the processor's destructor waits for
  host_.destroy();
}

child::result child::wait(const std::optional<sequence_position>& position,
                          const std::optional<time_point>& deadline) {
  usage_->require_owner("checkpoint()");
  if (is_killed_) return {errc::daemon_gone, {}};
  const session::waiter_id id = next_waiter_++;
  waiting_.emplace(id, std::nullopt);
  turn([&](auto& out) {
    session_.on_checkpoint(id, position, is_in_callback_, clock_->now(), out);
  });
  settle();
  while (!waiting_.at(id)) {
    const auto timer = next_timer();
    if (deadline && (!timer || *deadline <= *timer)) {
      clock_->move_to(*deadline);
      return give_up(id);
    }
    if (!timer) refuse_endless_wait(id, position);
    clock_->move_to(*timer);
    fire_timers();
    settle();
  }
  result outcome = *std::move(waiting_.at(id));
  waiting_.erase(id);
  return outcome;
}

child::result child::give_up(session::waiter_id id) {
  waiting_.erase(id);
  turn([&](auto& out) { session_.on_deadline(id, clock_->now(), out); });
  settle();
  return {errc::timed_out, {}};
}

void child::refuse_endless_wait(session::waiter_id id,
                                const std::optional<sequence_position>& position) {
  static_cast<void>(give_up(id));
  const std::string why =
      "checkpoint(" + (position ? to_string(*position) : std::string()) +
      ") waits for the daemon, which listens only while it waits for a callback to return, and "
      "none runs: on this one thread it would wait for ever. Use request(), or a deadline";
  if (is_in_callback_) usage_->refuse_in_callback(why);
  throw std::logic_error(why);
}

std::error_code child::request(const std::optional<sequence_position>& position) {
  usage_->require_owner("request()");
  if (is_killed_) return errc::daemon_gone;
  // As in production: at first, a callback's own requests wait for its return.
  if (patience_) return session_.on_request_for_later(position);
  std::error_code ec;
  turn([&](auto& out) { ec = session_.on_request(position, clock_->now(), out); });
  settle();
  return ec;
}

}  // namespace kclxx::testing
