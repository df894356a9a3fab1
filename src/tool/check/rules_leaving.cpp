// SPDX-License-Identifier: Apache-2.0
// When the child leaves, and when it must not.
#include <chrono>
#include <utility>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

void must_end(lockstep_daemon& with) {
  const auto end = with.leave();
  if (!end) throw violation(to_string(end, with.limit()));
}

void after_a_batch(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  must_end(with);
}

void at_the_start(rule_context& on) { must_end(on.start()); }

/// The ending has a rule of its own; a child that breaks it is judged by the others.
void after_an_ending(rule_context& on) {
  bool is_judged = false;
  for (const auto& ending : {shutdown_requested(), lease_lost(), shard_ended()}) {
    lockstep_daemon& with = on.start_initialized();
    if (!with.attempt_all({records(101, 3), ending})) continue;
    is_judged = true;
    must_end(with);
  }
  if (!is_judged) throw not_applicable("it answers no ending");
}

void with_success(rule_context& on) {
  bool is_judged = false;
  for (const auto& last : {records(101, 3), shutdown_requested(), lease_lost(), shard_ended()}) {
    lockstep_daemon& with = on.start_initialized();
    if (!with.attempt(last).is_answered) continue;
    is_judged = true;
    const auto end = with.leave();
    if (!end || !end->is_success()) {
      throw violation("after " + last.name + ": " + to_string(end, with.limit()));
    }
  }
  if (!is_judged) throw not_applicable("it answers nothing but initialize");
}

void in_an_action(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.send(records(101, 3));
  must_end(with);
}

void in_a_line(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  const std::string line = records(101, 3).line;
  with.peer().send(line.substr(0, line.size() / 2));
  must_end(with);
  if (!with.late.empty())
    throw violation("half a line was answered: " + in_quotes(with.late.front()));
}

void while_it_waits(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.send(records(101, 3));
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + with.limit();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    const bool is_late = left.count() <= 0;  // it may print without end
    const read_result came =
        is_late ? read_result{read_result::kind::timed_out} : with.peer().next_line(left);
    if (came.what != read_result::kind::line) throw violation("neither a checkpoint nor a status");
    const auto message = daemon_model::parse_child_message(came.text);
    if (std::holds_alternative<daemon_model::child_checkpoint>(message)) break;
    if (std::holds_alternative<daemon_model::child_status>(message)) {
      throw not_applicable("it asked for no checkpoint in processRecords");
    }
  }
  must_end(with);
}

void while_it_retries(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.row.set_fault([](const sequence_position&) { return "ThrottlingException"; });
  with.checkpoints.clear();
  with.write_answer = [&with, is_first = true](const std::string& line) mutable {
    if (!std::exchange(is_first, false)) return;
    with.peer().send(line + "\n");
    with.peer().close_input();
  };
  const reaction came = with.attempt(shard_ended());
  if (with.checkpoints.empty()) throw not_applicable("it asked for no checkpoint in shardEnded");
  if (!came.is_gone && !came.is_answered) throw violation(came.seen);
  must_end(with);
}

void daemon_dies(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.send(records(101, 3));
  with.peer().abandon();
  const auto end = with.peer().wait_end(with.limit());
  if (!end) throw violation(to_string(end, with.limit()));
}

void malformed(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  action broken = records(101, 3);
  broken.line.resize(broken.line.size() / 2);
  const reaction came = with.attempt(broken);
  if (came.is_answered) throw violation("half a batch was answered with success");
  if (!came.is_gone) throw violation(came.seen);
  const auto end = with.leave();
  if (!end || end->is_success()) throw violation(came.seen);
}

void survives(rule_context& on, signal_name which) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.peer().signal(which);
  with.call(records(104, 3));
  with.call(records(107, 3));
  must_end(with);
}

void terminate_then_shutdown(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.prepare(records(104, 3));
  with.peer().signal(signal_name::terminate);
  const reaction came = with.attempt(shutdown_requested());
  if (!came.is_answered) {
    const auto end = with.leave();
    if (end && end->signal != 0) throw not_applicable("the signal ended it; see sigterm");
    throw violation(came.seen);
  }
  if (with.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  if (with.row.checkpoint() != sequence_position("106")) {
    throw violation("106/0 was delivered; " + to_string(with.row.checkpoint()) +
                    " is persisted when shutdownRequested is answered");
  }
  must_end(with);
}

void terminate(rule_context& on) { survives(on, signal_name::terminate); }
void interrupt(rule_context& on) { survives(on, signal_name::interrupt); }
void hangup(rule_context& on) { survives(on, signal_name::hangup); }
void quit(rule_context& on) { survives(on, signal_name::quit); }

constexpr std::string_view no_limit =
    "The daemon closes the child's input and then waits, without a time limit, until its output "
    "and stderr end and the process is gone. A child that stays blocks the worker's shutdown, or "
    "the next shard's turn.";
constexpr std::string_view orphan =
    "The daemon is gone. A child that stays is an orphan, and may still do work that another "
    "worker has taken over.";
constexpr std::string_view whole_group =
    "A container's or terminal's signal reaches the whole process group. A child that it ends has "
    "persisted nothing, and turns a graceful stop into a crash of the worker.";

constexpr rule rules[] = {
    {"end-of-input", "the child ends when its input ends while it is idle", "P31", no_limit,
     after_a_batch},
    {"end-of-input-at-start", "the child ends when its input ends before any action", "P31",
     no_limit, at_the_start},
    {"end-of-input-after-ending",
     "the child ends when its input ends after shutdownRequested, leaseLost or shardEnded", "P31",
     no_limit, after_an_ending},
    {"exit-status", "the child exits with 0 when its input ends while nothing is to be done", "P56",
     "The daemon only logs it, but logs and monitoring tell a regular end from a failure by it.",
     with_success},
    {"end-of-input-in-action", "the child ends when its input ends in the middle of an action",
     "P31", orphan, in_an_action},
    {"end-of-input-in-line",
     "the child ends when its input ends in the middle of a line, and does not answer that", "P31",
     orphan, in_a_line},
    {"end-of-input-unanswered",
     "the child ends when its input ends while a checkpoint is unanswered", "P31", orphan,
     while_it_waits},
    {"end-of-input-while-retrying",
     "the child ends when its input ends after a checkpoint was throttled", "P31, P57",
     "The daemon answers no more. A child that continues to retry, or waits for an answer, "
     "blocks the worker's shutdown.",
     while_it_retries},
    {"daemon-dies", "the child ends when all its pipes break in the middle of an action", "P57",
     orphan, daemon_dies},
    {"malformed-line", "a line that is not JSON makes the child leave with a non-zero status",
     "P54",
     "The daemon waits for the status of what it sent, without a time limit: a child that skips "
     "the line hangs the shard. A status would report records as processed that were never "
     "read.",
     malformed},
    {"sigterm", "SIGTERM does not end the child under a daemon that continues", "P32", whole_group,
     terminate},
    {"sigterm-then-shutdown",
     "after SIGTERM to the process group shutdownRequested still persists everything delivered",
     "P32, P33, P46",
     "A container's stop brings both: the signal to each process, and then the daemon's question. "
     "A child that begins its own shutdown at the signal has nothing left to answer with, and what "
     "it had processed comes again elsewhere.",
     terminate_then_shutdown},
    {"sigint", "SIGINT does not end the child under a daemon that continues", "P32", whole_group,
     interrupt},
    {"sighup", "SIGHUP does not end the child under a daemon that continues", "P32", whole_group,
     hangup},
    {"sigquit", "SIGQUIT does not end the child under a daemon that continues", "P32",
     "SIGQUIT to the process group asks the JVM for a thread dump; the daemon continues. A child "
     "that "
     "ends by it ends the whole worker.",
     quit},
};

}  // namespace

std::span<const rule> leaving_rules() { return rules; }

}  // namespace kclxx::check
