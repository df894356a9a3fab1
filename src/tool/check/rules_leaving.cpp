// SPDX-License-Identifier: Apache-2.0
// When the child leaves, and when it must not.
#include <chrono>
#include <utility>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

void must_end(lockstep_daemon& daemon, const std::string& circumstances) {
  const auto end = daemon.leave();
  if (!end) throw breach(circumstances + ": " + to_string(end, daemon.limit()));
}

void while_idle(rule_context& context) {
  must_end(context.start(), "before any action");
  lockstep_daemon& first = context.start_with_batch();
  must_end(first, "after a batch");
  for (const auto& ending : {shutdown_requested(), lease_lost(), shard_ended()}) {
    lockstep_daemon& daemon = context.start_initialized();
    // Whether it answers the ending has a rule of its own.
    if (daemon.attempt_all({context.records(101, 3), ending})) {
      must_end(daemon, "after " + ending.name);
    }
  }
}

void with_success(rule_context& context) {
  bool is_judged = false;
  for (const auto& last :
       {context.records(101, 3), shutdown_requested(), lease_lost(), shard_ended()}) {
    lockstep_daemon& daemon = context.start_initialized();
    if (!daemon.attempt(last).is_answered) continue;
    is_judged = true;
    const auto end = daemon.leave();
    if (!end || !end->is_success()) {
      throw breach("after " + last.name + ": " + to_string(end, daemon.limit()));
    }
  }
  if (!is_judged) throw not_applicable("it answers nothing but initialize");
}

void in_an_action(rule_context& context) {
  lockstep_daemon& busy = context.start_initialized();
  busy.send(context.records(101, 3));
  must_end(busy, "in the middle of processRecords");
  lockstep_daemon& daemon = context.start_initialized();
  const std::string line = context.records(101, 3).line;
  daemon.peer().send(line.substr(0, line.size() / 2));
  must_end(daemon, "in the middle of a line");
  if (daemon.late.empty()) return;
  throw breach("half a line was answered: " + in_quotes(daemon.late.front()));
}

void while_it_waits(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.send(context.records(101, 3));
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + daemon.limit();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    const bool is_late = left.count() <= 0;  // it may print without end
    const read_result line =
        is_late ? read_result{read_result::kind::timed_out} : daemon.peer().next_line(left);
    if (line.what != read_result::kind::line) throw breach("neither a checkpoint nor a status");
    const auto message = daemon_model::parse_child_message(line.text);
    if (std::holds_alternative<daemon_model::child_checkpoint>(message)) break;
    if (std::holds_alternative<daemon_model::child_status>(message)) {
      throw not_applicable("it asked for no checkpoint in processRecords");
    }
  }
  must_end(daemon, "while a checkpoint is unanswered");
}

void while_it_retries(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  daemon.fail_writes("ThrottlingException");
  daemon.checkpoints.clear();
  daemon.write_answer = [&daemon, is_first = true](const std::string& line) mutable {
    if (std::exchange(is_first, false)) {
      daemon.peer().answer(line + "\n");
      daemon.peer().close_input();
    }
    return true;
  };
  const auto reaction = daemon.attempt(shard_ended());
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint in shardEnded");
  if (!reaction.is_gone && !reaction.is_answered) throw breach(reaction.seen);
  must_end(daemon, "after a checkpoint was throttled");
}

void daemon_dies(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.send(context.records(101, 3));
  daemon.peer().abandon();
  const auto end = daemon.peer().wait_end(daemon.limit());
  if (!end) throw breach(to_string(end, daemon.limit()));
}

void malformed(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  action broken = context.records(101, 3);
  broken.line.resize(broken.line.size() / 2);
  const auto reaction = daemon.attempt(broken);
  if (reaction.is_answered) throw breach("half a batch was answered with success");
  if (!reaction.is_gone) throw breach(reaction.seen);
  const auto end = daemon.leave();
  if (!end || end->is_success()) throw breach(reaction.seen);
}

void expect_answered(const reaction& reaction, const std::string& signal, const char* moment) {
  if (!reaction.is_answered) {
    throw breach(signal + " " + moment + ": " + reaction.seen);
  }
}

void survives(rule_context& context, const std::string& signal) {
  lockstep_daemon& daemon = context.start();
  // Once it has read half of a line it is up.
  action first = daemon.initialize_at("TRIM_HORIZON");
  const std::size_t half = first.line.size() / 2;
  daemon.peer().send(first.line.substr(0, half));
  daemon.peer().wait_until_read();
  daemon.peer().signal(signal);
  first.line = first.line.substr(half);
  expect_answered(daemon.attempt(first), signal, "before initialize");
  const action batch = context.records(101, 3);
  daemon.send(batch);
  daemon.peer().wait_until_read();
  daemon.peer().signal(signal);
  expect_answered(daemon.await(batch), signal, "in processRecords");
  daemon.peer().signal(signal);
  expect_answered(daemon.attempt(context.records(104, 3)), signal, "between two actions");
  expect_answered(daemon.attempt(context.records(107, 3)), signal, "between two actions");
  must_end(daemon, "after " + signal);
}

void signals(rule_context& context) {
  for (const char* signal : {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"}) survives(context, signal);
}

void terminate_then_shutdown(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  daemon.prepare(context.records(104, 3));
  daemon.peer().signal("SIGTERM");
  const auto reaction = daemon.attempt(shutdown_requested());
  if (!reaction.is_answered) {
    const auto end = daemon.leave();
    if (end && end->signal != 0) throw not_applicable("the signal ended it; see signals");
    throw breach(reaction.seen);
  }
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  expect_persisted(daemon, sequence_position("106"));
  must_end(daemon, "after SIGTERM and shutdownRequested");
}

constexpr std::string_view orphan =
    "The daemon is gone. A child that stays is an orphan, and may still do work that another "
    "worker has taken over.";

constexpr rule leaving_rule_list[] = {
    {"end-of-input",
     "the child ends when its input ends while no action is open: before the first, after a batch, "
     "after an ending",
     "P31",
     "The daemon closes the child's input and then waits, without a time limit, until its output "
     "and stderr end and the process is gone. A child that stays blocks the worker's shutdown, or "
     "the next shard's turn.",
     while_idle},
    {"exit-status", "the child exits with 0 when its input ends while nothing is to be done", "P56",
     "The daemon only logs it, but logs and monitoring tell a regular end from a failure by it.",
     with_success},
    {"end-of-input-in-action",
     "the child ends when its input ends in the middle of an action, or of a line, which it does "
     "not answer",
     "P31", orphan, in_an_action},
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
    {"signals",
     "SIGTERM, SIGINT, SIGHUP and SIGQUIT do not end the child under a daemon that continues",
     "P32",
     "A container's or terminal's signal reaches the whole process group; SIGQUIT asks the JVM for "
     "a thread dump. A child that it ends has persisted nothing, and ends the whole worker.",
     signals},
    {"sigterm-then-shutdown",
     "after SIGTERM to the process group shutdownRequested still persists everything delivered",
     "P32, P33, P46",
     "A container's stop brings both: the signal to each process, and then the daemon's question. "
     "A child that begins its own shutdown at the signal has nothing left to answer with, and what "
     "it had processed comes again elsewhere.",
     terminate_then_shutdown},
};

}  // namespace

std::span<const rule> leaving_rules() { return leaving_rule_list; }

}  // namespace kclxx::check
