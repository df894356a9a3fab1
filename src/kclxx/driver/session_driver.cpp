// SPDX-License-Identifier: Apache-2.0
#include "driver/session_driver.hpp"

#include <cstring>
#include <stdexcept>
#include <variant>

#include "base/duration.hpp"
#include "base/overloaded.hpp"
#include "base/printable.hpp"
#include "protocol/encoder.hpp"

namespace kclxx::driver {

namespace {

constexpr const char* cannot_write = "cannot write to the daemon: ";

/// The options as they are acted upon.
run_options effective(run_options options) {
  for (std::chrono::milliseconds* duration :
       {&options.checkpoint_interval, &options.retry.initial_backoff, &options.retry.max_backoff,
        &options.shutdown_retry_limit, &options.grace_time}) {
    *duration = detail::clamped(*duration);
  }
  if (options.retention) options.retention = detail::clamped(*options.retention);
  return options;
}

/// "process_records (3 records, 101/0 to 103/0)", for messages about a callback.
std::string text_of(const session::call& call) {
  std::string text(detail::callback_name(call.kind));
  if (call.kind != protocol::action_kind::process_records) return text;
  if (call.batch.empty()) return text + " (no records)";
  if (call.batch.size() == 1) return text + " (record " + to_string(call.batch[0].position()) + ")";
  return text + " (" + std::to_string(call.batch.size()) + " records, " +
         to_string(call.batch.front().position()) + " to " +
         to_string(call.batch.back().position()) + ")";
}

/// A sentinel has no sub-sequence number.
std::string text_of(const sequence_position& position) {
  return position.is_number() ? to_string(position) : position.sequence_number();
}

bool is_answer(const line_decoder::decoded& line) {
  return std::holds_alternative<protocol::checkpoint_answer>(line.message.body);
}

observer::batch_delivered described(const record_batch& batch) {
  observer::batch_delivered event{.records = batch.size(),
                                  .millis_behind_latest = batch.millis_behind_latest()};
  for (const record& delivered : batch) event.bytes += delivered.data().size();
  if (!batch.empty()) {
    event.first = batch.front().position();
    event.last = batch.back().position();
    event.last_arrival = batch.back().approximate_arrival_timestamp();
  }
  return event;
}

}  // namespace

session::session::failure describe(const std::string& source, const std::exception_ptr& thrown) {
  const bool is_lease_gone = detail::is_lease_gone(thrown);
  return {source + (is_lease_gone ? " ended early: " : " failed: ") + detail::message_of(thrown),
          is_lease_gone};
}

std::string observer_threw(const std::exception_ptr& thrown) {
  return describe("an observer", thrown).text + " (logged once)";
}

session_driver::session_driver(processor_factory make_processor, const run_options& options,
                               std::uint32_t seed, host& owner)
    : options_(effective(options)),
      host_(owner),
      session_(options_, seed),
      processor_(std::move(make_processor)),
      events_(owner),
      gap_detector_(options_.retention) {}

template <class Event>
void session_driver::feed(Event event) {
  process(event);
  take_early_line();
}

template <class Event>
void session_driver::process(Event event) {
  outputs_.clear();
  event(outputs_);
  carry_out();
}

void session_driver::carry_out() {
  events_.settle(session_);
  for (session::output& output : outputs_) carry_out(output);
  write();
  events_.settle(session_);
}

void session_driver::carry_out(session::output& output) {
  std::visit(
      overloaded{
          [&](session::write_checkpoint& checkpoint) {
            protocol::append_checkpoint(lines_, checkpoint.position.is_number()
                                                    ? std::optional(checkpoint.position)
                                                    : std::nullopt);
            events_.on_checkpoint(checkpoint.position, session_);
          },
          [&](session::write_status& status) {
            protocol::append_status(lines_, status.action);
            events_.on_status(status.kind, session_);
            if (status.kind == protocol::action_kind::lease_lost) {
              log_lease_ended("another worker has it");
            } else if (status.kind == protocol::action_kind::shard_ended) {
              log_lease_ended(session_.is_shard_finished() ? "the shard is finished"
                                                           : "another worker has it");
            }
          },
          [&](session::call& call) {
            const protocol::action_kind callback = call.kind;
            const auto start_position = call.start_position;
            auto event = events_.event_of(call);
            host_.call(std::move(call));
            events_.on_call(std::move(event), callback);
            if (callback == protocol::action_kind::initialize) log_lease_gained(start_position);
          },
          [&](session::notify_waiter& told) { notify(told.waiter, told.result); },
          [&](session::arm_timer& armed) { host_.arm(armed.timer, armed.after); },
          [&](session::log_line& line) { log(line.level, std::move(line.text), line.position); },
          [&](session::end_calls&) {
            have_calls_ended_ = true;
            host_.end_timers();
          },
          [&](session::request_stop&) { host_.request_stop(); },
          [&](session::leave& leave) {
            write();
            status_ = leave.status;
            events_.on_left(leave.status, session_);
            log_lease_ended(leave.status == exit_status::ok
                                ? "the daemon has closed the dialogue"
                                : "this child ends with status " +
                                      std::to_string(static_cast<int>(leave.status)));
            for (std::string& text : limiter_.take_left_out()) {
              host_.write_log(log_level::warning, std::move(text), std::nullopt);
            }
            host_.left(leave.status);
          },
      },
      output);
}

void session_driver::write() {
  if (lines_.empty()) return;
  const std::error_code ec = host_.write(lines_);
  lines_.clear();
  if (!ec) return;
  // Not outputs_, which the caller may be going through.
  session::outputs outputs_of_failure;
  session_.on_failure(exit_status::daemon_gone, cannot_write + ec.message(), outputs_of_failure);
  for (session::output& output : outputs_of_failure) carry_out(output);
}

void session_driver::log(log_level level, std::string text,
                         const std::optional<sequence_position>& position) {
  if (auto passed = limiter_.pass(level, std::move(text), host_.now())) {
    host_.write_log(level, *std::move(passed), position);
  }
}

void session_driver::notify(session::waiter_id waiter, std::error_code result) {
  auto found = handlers_.extract(waiter);
  if (found.empty()) return host_.wake(waiter, result);
  host_.run_handler(std::move(found.mapped()), result);
}

void session_driver::on_line(line_decoder::outcome&& line) {
  if (auto* const decoded = std::get_if<line_decoder::decoded>(&line)) {
    warn_of_oddities(*decoded);
    const bool is_in_time = is_answer(*decoded) ? unanswered().has_value() : !is_open();
    if (is_in_time) return hand_over(std::move(*decoded));
    early_line_ = std::move(*decoded);
    take_early_line();
    input_is_transcript_ = input_is_transcript_ || early_line_;
  } else if (auto* const bad_line = std::get_if<line_decoder::bad_line>(&line)) {
    fail(exit_status::protocol_error, bad_line->text);
  } else if (auto* const end = std::get_if<line_decoder::end>(&line)) {
    const bool may_wait = input_is_transcript_ && !end->is_in_line && end->error == 0;
    if (!may_wait) return on_end_of_input(end->is_in_line, end->error);
    early_line_ = *end;
    take_early_line();
    if (early_line_) on_end_behind_line();
  } else {
    warn_once(oddity::blank_line,
              "the daemon sent a line without a message; such lines are skipped. Logged once.");
  }
}

void session_driver::hand_over(line_decoder::decoded&& line) {
  look_for_gap(line);
  process([&](auto& out) {
    session_.on_message(std::move(line.message), std::move(line.batch), host_.now(), out);
  });
}

void session_driver::look_for_gap(const line_decoder::decoded& line) {
  if (const auto* const initialize = std::get_if<protocol::initialize>(&line.message.body)) {
    return gap_detector_.start(initialize->start_position, host_.date());
  }
  if (line.batch.empty()) return;
  auto gap = gap_detector_.on_record(line.batch.front());
  if (!gap) return;
  log(gap->is_retention_assumed ? log_level::warning : log_level::error, text_of(*gap),
      gap->start_position);
  if (host_.is_observed()) host_.observe(*std::move(gap));
}

void session_driver::log_lease_gained(const std::optional<sequence_position>& position) {
  has_lease_ = true;
  const std::string start = position
                                ? (position->is_number() ? "after " : "from ") + text_of(*position)
                                : "without a position";
  host_.log_lease("lease gained: reading begins " + start);
}

void session_driver::log_lease_ended(const std::string& reason) {
  if (!std::exchange(has_lease_, false)) return;
  const auto& persisted = session_.persisted();
  host_.log_lease("lease ended: " + reason +
                  "; stored position: " + (persisted ? text_of(*persisted) : "none"));
}

/// Hands over the early line, if its turn has come.
void session_driver::take_early_line() {
  while (early_line_ && !status_) {
    auto* const line = std::get_if<line_decoder::decoded>(&*early_line_);
    const bool answers = line != nullptr && is_answer(*line);
    if (answers && !unanswered() && is_open()) return;
    if (!answers && is_open()) {
      // At the end of the input no request comes that would complete the shard's end.
      const bool is_last = line == nullptr && awaits_completion();
      if (!unanswered() && !is_last) return;
      if (unanswered()) {  // the transcript has no answer to it, which would have come before
        process([&](auto& out) { session_.on_no_answer(host_.now(), out); });
        continue;
      }
    }
    line_decoder::outcome taken = *std::exchange(early_line_, std::nullopt);
    if (answers && !unanswered()) {
      warn_once(
          oddity::unasked_answer,
          "the daemon answered a checkpoint that was not asked for; such answers are skipped. "
          "Logged once.");
    } else if (auto* const decoded = std::get_if<line_decoder::decoded>(&taken)) {
      hand_over(std::move(*decoded));
    } else {
      process([&](auto& out) { session_.on_end_of_input(false, out); });
    }
  }
}

void session_driver::warn_of_oddities(const line_decoder::decoded& line) {
  if (line.has_replaced_utf8) {
    warn_once(
        oddity::invalid_utf8,
        "a line from the daemon has bytes that are not UTF-8; U+FFFD replaces them. Start the "
        "daemon with -Dfile.encoding=UTF-8. Logged once.");
  }
  const auto* records = std::get_if<protocol::process_records>(&line.message.body);
  if (records != nullptr && !records->unknown_time.empty()) {
    warn_once(oddity::unknown_time, records->unknown_time +
                                        ", which is no time in milliseconds up to the year 2262; "
                                        "such times are delivered as unknown. Logged once.");
  }
}

void session_driver::warn_once(oddity what, std::string text) {
  if (std::exchange(logged_oddities_[static_cast<std::size_t>(what)], true)) return;
  log(log_level::warning, std::move(text));
}

void session_driver::fail(exit_status status, const std::string& reason) {
  feed([&](auto& out) { session_.on_failure(status, reason, out); });
}

void session_driver::on_end_of_input(bool unfinished_line, int error) {
  if (error != 0) {
    return fail(exit_status::daemon_gone,
                std::string("cannot read from the daemon: ") + std::strerror(error));
  }
  feed([&](auto& out) { session_.on_end_of_input(unfinished_line, out); });
}

void session_driver::on_end_behind_line() {
  process([&](auto& out) { session_.on_end_behind_line(out); });
}

void session_driver::on_timer(session::timer timer) {
  feed([&](auto& out) { session_.on_timer(timer, host_.now(), out); });
}

void session_driver::on_callback_lasts() {
  feed([&](auto& out) { session_.on_callback_lasts(host_.now(), out); });
}

void session_driver::on_output_broken(std::error_code error) {
  fail(exit_status::daemon_gone, cannot_write + error.message());
}

session_driver::callback_result session_driver::run_callback(
    session::call call, const shard_context::fields& names,
    const std::shared_ptr<detail::shard_service>& service) {
  if (!is_due(call)) return {};
  callback_result result;
  const auto began = host_.is_observed() ? std::optional(host_.now()) : std::nullopt;
  try {
    processor_.run(call, names, service);
  } catch (...) {
    result.thrown = std::current_exception();
    result.failure = describe(text_of(call), result.thrown);
    result.failure->is_in_callback = true;
  }
  if (began) result.duration = host_.now() - *began;
  // The batch's memory serves for the next line, which comes once the status is written.
  const auto owner = std::exchange(call.batch, {}).owner();
  result.keeps_batch = owner.use_count() > 1;
  return result;
}

void session_driver::on_callback_done(const callback_result& result) {
  if (result.duration) {
    using outcome = observer::callback_ended::outcome;
    const outcome how = !result.failure                      ? outcome::returned
                        : session_.is_fatal(*result.failure) ? outcome::threw
                                                             : outcome::lease_gone;
    events_.on_callback_ended(*result.duration, how, result.failure ? result.failure->text : "");
  }
  session_.set_mode(processor_.mode());
  if (result.keeps_batch && processor_.mode() == checkpoint_mode::automatic) {
    warn_once(oddity::kept_batch,
              "process_records returned but a copy of its record_batch is still in use; in "
              "checkpoint_mode::automatic its records count as complete already. If they are still "
              "being processed, use checkpoint_mode::manual. Logged once.");
  }
  feed([&](auto& out) {
    if (result.failure) {
      session_.on_threw(*result.failure, host_.now(), out);
    } else {
      session_.on_callback_returned(host_.now(), out);
    }
  });
}

void session_driver::on_user_code_threw(const session::session::failure& thrown) {
  feed([&](auto& out) { session_.on_threw(thrown, host_.now(), out); });
}

void session_driver::on_checkpoint(session::waiter_id id,
                                   const std::optional<sequence_position>& position,
                                   bool from_callback) {
  feed([&](auto& out) { session_.on_checkpoint(id, position, from_callback, host_.now(), out); });
}

bool session_driver::on_deadline(session::waiter_id id) {
  bool was_waiting = false;
  feed([&](auto& out) { was_waiting = session_.on_deadline(id, host_.now(), out); });
  return was_waiting;
}

void session_driver::on_async_checkpoint(const std::optional<sequence_position>& position,
                                         checkpoint_handler handler, bool from_callback) {
  std::optional<session::waiter_id> id;
  if (handler) {
    id = next_waiter_++;
    handlers_.emplace(*id, std::move(handler));
  }
  feed([&](auto& out) {
    session_.on_async_checkpoint(id, position, from_callback, host_.now(), out);
  });
}

void user_processor::run(const session::call& call, const shard_context::fields& names,
                         const std::shared_ptr<detail::shard_service>& service) {
  using protocol::action_kind;
  const auto with = [&] { return detail::service_access::handle_of<checkpointer>(service); };
  switch (call.kind) {
    case action_kind::initialize: {
      shard_context::fields fields = names;
      fields.shard_id = call.shard_id;
      fields.start_position = call.start_position;
      context_ = detail::service_access::make<shard_context>(std::move(fields), service);
      processor_ = make_processor_(*context_);
      if (!processor_) throw std::logic_error("the processor factory returned no processor");
      mode_ = processor_->mode();
      break;
    }
    case action_kind::process_records:
      processor_->process_records(call.batch, with());
      break;
    case action_kind::lease_lost:
      return processor_->lease_lost();
    case action_kind::shard_ended:
      processor_->shard_ended(with());
      break;
    case action_kind::shutdown_requested:
      processor_->shutdown_requested(with());
      break;
  }
  // A processor may make a form of processing in any callback.
  if (service && service->is_completion_tracked()) mode_ = checkpoint_mode::manual;
}

std::optional<observer::shard_event> dialogue_events::event_of(const session::call& call) const {
  if (!host_.is_observed()) return std::nullopt;
  switch (call.kind) {
    case observer::callback_kind::initialize:
      return observer::lease_gained{call.start_position};
    case observer::callback_kind::process_records:
      return described(call.batch);
    case observer::callback_kind::lease_lost:
      return observer::lease_ended{observer::lease_ended::reason::lost};
    default:
      return std::nullopt;
  }
}

void dialogue_events::on_call(std::optional<observer::shard_event> event,
                              observer::callback_kind kind) {
  open_ = kind;
  if (event) host_.observe(*std::move(event));
}

void dialogue_events::on_callback_ended(std::chrono::nanoseconds duration,
                                        observer::callback_ended::outcome outcome,
                                        std::string error) {
  host_.observe(observer::callback_ended{*open_, duration, outcome, std::move(error)});
}

void dialogue_events::on_status(const std::optional<session::action_kind>& kind,
                                const session::session& session) {
  const auto called = std::exchange(open_, std::nullopt);
  if (!host_.is_observed()) return;
  using reason = observer::lease_ended::reason;
  if (kind == observer::callback_kind::shard_ended) {
    // Without the end persisted a status follows only when the lease is lost (P50, P51).
    host_.observe(
        observer::lease_ended{session.is_shard_finished() ? reason::shard_finished : reason::lost});
  } else if (kind == observer::callback_kind::lease_lost && !called) {
    // Without a call: on_call sends the event of a call.
    host_.observe(observer::lease_ended{reason::lost});
  }
}

void dialogue_events::on_checkpoint(const sequence_position& position, session::session& session) {
  if (!host_.is_observed()) return;
  send_answer(session);
  unanswered_ = request{position, host_.now()};
  host_.observe(observer::checkpoint_requested{position});
}

void dialogue_events::settle(session::session& session) {
  if (unanswered_ && (session.has_answer() || !session.unanswered())) send_answer(session);
}

void dialogue_events::send_answer(session::session& session) {
  const auto asked = std::exchange(unanswered_, std::nullopt);
  if (!asked) return;
  const auto answer = session.take_answer();
  host_.observe(
      observer::checkpoint_answered{asked->position, host_.now() - asked->time,
                                    answer ? answer->error.value_or("") : "not answered"});
}

void dialogue_events::on_left(exit_status status, session::session& session) {
  if (!host_.is_observed()) return;
  send_answer(session);
  host_.observe(observer::session_ended{status});
}

}  // namespace kclxx::driver
