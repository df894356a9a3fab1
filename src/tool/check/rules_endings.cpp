// SPDX-License-Identifier: Apache-2.0
// The end of a shard, of a lease and of the child.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

// The shard's end, where a missing checkpoint costs the child shards.

const sequence_position& shard_end() {
  static const sequence_position end("SHARD_END");
  return end;
}

void expect_end(const lockstep_daemon& daemon) {
  if (daemon.row.checkpoint() == shard_end()) return;
  std::string text = "the status, and " + to_string(daemon.row.checkpoint()) + " is persisted";
  const auto at_end = [](const auto& checkpoint) {
    return checkpoint.during == protocol::action_kind::shard_ended;
  };
  const auto asked = std::find_if(daemon.checkpoints.rbegin(), daemon.checkpoints.rend(), at_end);
  if (asked == daemon.checkpoints.rend()) throw breach(text + "; no checkpoint was asked for");
  text += "; the last thing asked for was " + to_string(*asked);
  throw breach(text + (asked->error ? ", which failed with " + *asked->error : ""));
}

void end_shard(lockstep_daemon& daemon, const action& ending = shard_ended()) {
  daemon.call_all({ending});
  expect_end(daemon);
}

/// A child that cannot persist the end, for one of these reasons, leaves without a status.
void leaves_without_status(rule_context& context, std::initializer_list<const char*> errors) {
  for (const char* error : errors) {
    lockstep_daemon& daemon = context.start_with_batch();
    daemon.fail_writes(error, std::nullopt, shard_end());
    const auto reaction = daemon.attempt(shard_ended());
    if (reaction.is_answered) expect_end(daemon);
    if (daemon.failed_with(error) == nullptr) throw not_applicable(reaction.seen);
    const std::string seen = reaction.seen + "; its checkpoints failed with " + error;
    if (!reaction.is_gone) throw breach(seen);
    const auto end = daemon.leave();
    if (!end || end->is_success()) throw breach(seen);
  }
}

constexpr std::string_view child_shards =
    "The daemon finishes a shard only when its end is persisted. Otherwise the child shards "
    "are never read, although the child reported success.";

// When the child leaves, and when it must not.

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
  daemon.write(line.substr(0, line.size() / 2), "");
  must_end(daemon, "in the middle of a line");
  if (daemon.late.empty()) return;
  throw breach("half a line was answered: " + in_quotes(daemon.late.front()));
}

void while_it_waits(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.send(context.records(101, 3));
  const auto deadline = daemon.peer().now() + daemon.limit();
  for (;;) {
    const auto next = daemon.next_line(deadline);
    const bool is_late = daemon.peer().now() >= deadline;  // it may print without end
    if (next.what != dialogue::event_kind::line || is_late) {
      throw breach("neither a checkpoint nor a status");
    }
    const auto message = daemon_model::parse_child_message(next.line);
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
      daemon.answer(line);
      daemon.peer().close_input();
    }
    return true;
  };
  const auto reaction = daemon.attempt(shard_ended());
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint in shardEnded");
  if (!reaction.is_gone && !reaction.is_answered) throw breach(reaction.seen);
  must_end(daemon, "after a checkpoint was throttled");
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

void survives(rule_context& context, int number, const std::string& signal) {
  lockstep_daemon& daemon = context.start();
  // A child that has read half of a line has started.
  action first = daemon.initialize();
  const std::size_t half = first.line.size() / 2;
  daemon.write(first.line.substr(0, half), "");
  daemon.wait_until_read();
  daemon.peer().kill(number);
  first.line = first.line.substr(half);
  expect_answered(daemon.attempt(first), signal, "before initialize");
  const action batch = context.records(101, 3);
  daemon.send(batch);
  daemon.wait_until_read();
  daemon.peer().kill(number);
  expect_answered(daemon.await(batch), signal, "in processRecords");
  daemon.peer().kill(number);
  expect_answered(daemon.attempt(context.records(104, 3)), signal, "between two actions");
  expect_answered(daemon.attempt(context.records(107, 3)), signal, "between two actions");
  must_end(daemon, "after " + signal);
}

void terminate_then_shutdown(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  daemon.prepare(context.records(104, 3));
  daemon.peer().kill(SIGTERM);
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

// The rules about a processor that throws, or prints. Nothing from outside can make it do so: it
// has to do so at a record with the given data.

constexpr std::uint64_t poison_number = 105;

const std::string& poison_of(const rule_context& context) {
  if (context.settings().poison) return *context.settings().poison;
  throw not_applicable("no record was named at which the processor throws; see --poison");
}

/// A child that has had a good batch.
lockstep_daemon& before_poison(rule_context& context) {
  static_cast<void>(poison_of(context));
  return context.start_with_batch();
}

/// Its second record is the poison.
action poisoned_batch(const rule_context& context) {
  return records_of({context.payload(), poison_of(context), context.payload()}, poison_number - 1);
}

/// The last of many records is the poison: a child that answers first still has them to process.
action long_poisoned_batch(const rule_context& context) {
  std::vector<std::string> payloads;
  for (std::uint64_t i = 0; i < 1000; ++i) payloads.push_back(context.payload(i));
  payloads.push_back(poison_of(context));
  return records_of(payloads, poison_number - 1);
}

/// Whether the child survives the poison. A status does not mean that a record was processed: a
/// child that processes on a thread of its own fails later. So it gets time, and further actions,
/// as long as it answers.
bool goes_on(const rule_context& context, lockstep_daemon& daemon, std::chrono::milliseconds time) {
  return daemon.attempt(poisoned_batch(context)).is_answered && !daemon.ends_within(time) &&
         daemon.attempt(context.records(107, 3)).is_answered &&
         daemon.attempt(shutdown_requested()).is_answered;
}

void leaves(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  if (goes_on(context, daemon, daemon.limit()) && !daemon.ends_within(daemon.limit())) {
    throw breach(
        "it answered the batch with the record at which the processor throws, the next one and "
        "shutdownRequested, and stayed");
  }
  if (!daemon.ends_within(std::chrono::milliseconds(0))) {
    throw breach("it neither answers nor leaves");
  }
  const auto end = daemon.leave();
  if (!end || end->is_success()) throw breach(to_string(end, daemon.limit()));
}

void no_checkpoint(rule_context& context) {
  const auto expect_before = [](const lockstep_daemon& daemon, const sequence_position& poison) {
    if (daemon.row.checkpoint().is_number() && daemon.row.checkpoint() >= poison) {
      throw breach("the processor threw at " + to_string(poison) + "; " +
                   to_string(daemon.row.checkpoint()) + " is persisted");
    }
  };
  lockstep_daemon& patient = before_poison(context);
  goes_on(context, patient, lateness);
  expect_before(patient, sequence_position(std::to_string(poison_number)));
  lockstep_daemon& hasty = before_poison(context);
  const action batch = long_poisoned_batch(context);
  if (hasty.attempt(batch).is_answered) hasty.attempt(shutdown_requested());
  expect_before(hasty, *batch.largest);
}

void no_shard_end(rule_context& context) {
  const auto end_after = [&](const action& batch, std::chrono::milliseconds time) {
    lockstep_daemon& daemon = before_poison(context);
    if (!daemon.attempt(batch).is_answered || daemon.ends_within(time)) return;
    daemon.attempt(shard_ended());
    if (daemon.row.checkpoint() == sequence_position("SHARD_END")) {
      throw breach("the processor threw at a record, and the end of the shard is persisted");
    }
  };
  end_after(poisoned_batch(context), lateness);
  end_after(long_poisoned_batch(context), std::chrono::milliseconds(0));
}

void earlier_work(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  const bool was_answered = daemon.attempt(poisoned_batch(context)).is_answered;
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  if (daemon.row.checkpoint() >= sequence_position("103")) return;
  // Between two actions the daemon reads nothing, so a checkpoint then is not answered (P25).
  if (was_answered) throw not_applicable("it failed after its status; see poison-exit");
  throw breach("the batch up to 103/0 was complete; " + to_string(daemon.row.checkpoint()) +
               " is persisted");
}

const std::string& printing_record(const rule_context& context) {
  const auto& prints = context.settings().prints;
  if (prints) return *prints;
  throw not_applicable("no record was named at which the processor prints; see --prints");
}

void stray_print_in_bulk(rule_context& context) {
  const std::string& prints = printing_record(context);
  if (!context.start_initialized().attempt(records_of({prints}, 101)).is_answered) {
    throw not_applicable("it does not bear one print; see stray-print");
  }
  lockstep_daemon& daemon = context.start_initialized();
  constexpr std::size_t count = 10000;
  daemon.call(records_of(std::vector<std::string>(count, prints), 101));
  daemon.call(context.records(101 + count, 3));
}

constexpr rule ending_rule_list[] = {
    {"shard-end", "the shard's end is persisted before shardEnded is answered", "P47", child_shards,
     [](rule_context& context) { end_shard(context.start_with_batch()); }},
    {"shard-end-stored", "the end is persisted, too, when the last position was persisted before",
     "P48",
     "A checkpoint at the last position then does nothing at all (open upstream since 2017); only "
     "one with a null sequence number means the end. Without it the child shards are never read.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_with_batch();
       if (daemon.row.checkpoint() != sequence_position("103")) {
         throw not_applicable("it had not persisted the last position before the shard's end");
       }
       end_shard(daemon);
     }},
    {"shard-end-without-records",
     "the end is persisted, too, when nothing was delivered since the restart", "P47",
     "A worker that resumes at the last position of a closed shard has no record whose position it "
     "could use; only a null sequence number means the end. Without it the child shards are never "
     "read.",
     [](rule_context& context) { end_shard(context.start_initialized(sequence_position("300"))); }},
    {"shard-end-empty-shard", "the end is persisted, too, of a shard that never had a record",
     "P47",
     "A shard can be split or merged before anything is written to it. There is no position at all "
     "then but TRIM_HORIZON or LATEST, and a checkpoint at one of these finishes nothing: the "
     "child shards are never read.",
     [](rule_context& context) {
       for (const char* position : {"TRIM_HORIZON", "LATEST"}) {
         end_shard(context.start_initialized(sequence_position(position)));
       }
     }},
    {"shard-end-old", "shutdown with TERMINATE or SHARD_END is treated as shardEnded", "P11, P47",
     child_shards,
     [](rule_context& context) {
       for (const char* reason : {"TERMINATE", "SHARD_END"}) {
         end_shard(context.start_with_batch(), old_shutdown(reason));
       }
     }},
    {"shard-end-throttled",
     "a checkpoint of the end that fails twice with ThrottlingException, or with "
     "KinesisClientLibDependencyException, is retried before the status",
     "P50",
     "There is no later opportunity: the daemon does not ask the child again. The child "
     "shards are not read before a restart.",
     [](rule_context& context) {
       for (const char* error : {"ThrottlingException", "KinesisClientLibDependencyException"}) {
         lockstep_daemon& daemon = context.start_with_batch();
         daemon.fail_writes(error, 2, shard_end());
         end_shard(daemon);
       }
     }},
    {"shard-end-failed",
     "no status follows when the end could not be persisted, for InvalidStateException or an error "
     "of an unknown name; the child exits with a non-zero status",
     "P50",
     "A status reports success and loses the child shards until someone notices. A child that "
     "neither answers nor exits hangs the shard. One that exits ends the worker: its restart tries "
     "again.",
     [](rule_context& context) {
       leaves_without_status(context, {"InvalidStateException", "TomorrowsException"});
     }},
    {"shard-end-gives-up",
     "when the checkpoint of the end fails every time with ThrottlingException, or with "
     "KinesisClientLibDependencyException, the child exits in time with a non-zero status",
     "P50",
     "A child that retries without end hangs the shard without a message. A status would lose the "
     "child shards. A child that exits ends the worker: its restart tries again.",
     [](rule_context& context) {
       leaves_without_status(context,
                             {"ThrottlingException", "KinesisClientLibDependencyException"});
     }},
    {"shard-end-lease-gone",
     "shardEnded is answered even if its checkpoint fails with ShutdownException", "P51",
     "Another worker has the lease and ends the shard. With the status the daemon finds out and "
     "continues; a child that exits ends the worker, with all its shards, without need.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_with_batch();
       daemon.row.lose();
       daemon.call_all({shard_ended()});
       if (daemon.failed_with("ShutdownException") == nullptr) {
         throw not_applicable("it asked for no checkpoint at the shard's end");
       }
     }},
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
     orphan,
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.send(context.records(101, 3));
       daemon.peer().abandon();
       const auto end = daemon.leave();
       if (!end) throw breach(to_string(end, daemon.limit()));
     }},
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
     [](rule_context& context) {
       survives(context, SIGTERM, "SIGTERM");
       survives(context, SIGINT, "SIGINT");
       survives(context, SIGHUP, "SIGHUP");
       survives(context, SIGQUIT, "SIGQUIT");
     }},
    {"sigterm-then-shutdown",
     "after SIGTERM to the process group shutdownRequested still persists everything delivered",
     "P32, P33, P46",
     "A container's stop brings both: the signal to each process, and then the daemon's question. "
     "A child that begins its own shutdown at the signal has nothing left to answer with, and what "
     "it had processed comes again elsewhere.",
     terminate_then_shutdown},
    {"poison-exit",
     "the child exits with a non-zero status when the processor throws, in that batch or later",
     "P53", "A child that neither answers nor exits hangs the shard without a message.", leaves},
    {"poison-checkpoint",
     "no checkpoint covers a record at which the processor threw, also in shutdownRequested", "P53",
     "The record is never delivered again: silent loss.", no_checkpoint},
    {"poison-shard-end", "the end of a shard is not persisted after the processor threw",
     "P50, P53",
     "The record is never delivered again, and the shard is never read again: silent loss.",
     no_shard_end},
    {"poison-earlier-work", "what was complete before the processor threw is persisted", "P53",
     "Persisting it costs nothing. Otherwise it is processed again after each restart.",
     earlier_work},
    {"stray-print", "text that the processor prints to stdout does no harm", "P3, P4",
     "Text without a newline becomes part of the status's line. The daemon skips that line, and "
     "the shard hangs because of a debug print.",
     [](rule_context& context) {
       const std::string& prints = printing_record(context);
       lockstep_daemon& daemon = context.start_initialized();
       daemon.call(records_of({context.payload(), prints, context.payload()}, 101));
       daemon.call(context.records(104, 3));
     }},
    {"stray-print-in-bulk",
     "text that the processor prints to stdout at 10,000 records does no harm", "P4",
     "A pipe holds 64 KiB. A child that redirects its stdout to a pipe of its own, and does not "
     "empty it, hangs in a print; one that keeps the text grows without a limit.",
     stray_print_in_bulk},
};

}  // namespace

std::span<const rule> ending_rules() { return ending_rule_list; }

}  // namespace kclxx::check
