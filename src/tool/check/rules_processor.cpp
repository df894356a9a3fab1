// SPDX-License-Identifier: Apache-2.0
// What cannot be provoked from outside: the user's processor throws, or prints. These need a
// processor that does so at a record with the given data.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

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

/// The last of many is the poison: one whose status comes first still has them to process.
action long_poisoned_batch(const rule_context& context) {
  std::vector<std::string> payloads;
  for (std::uint64_t i = 0; i < 1000; ++i) payloads.push_back(context.payload(i));
  payloads.push_back(poison_of(context));
  return records_of(payloads, poison_number - 1);
}

/// A status does not mean that a record was processed: one that processes on a thread of its own
/// fails later. So it has time, and further actions, as long as it answers.
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
  goes_on(context, patient, context.settings().lateness);
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
  end_after(poisoned_batch(context), context.settings().lateness);
  end_after(long_poisoned_batch(context), std::chrono::milliseconds(0));
}

void earlier_work(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  const bool was_answered = daemon.attempt(poisoned_batch(context)).is_answered;
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  if (daemon.row.checkpoint() >= sequence_position("103")) return;
  // Between two actions the daemon reads nothing.
  if (was_answered) throw not_applicable("it failed after its status; see poison-exit");
  throw breach("the batch up to 103/0 was complete; " + to_string(daemon.row.checkpoint()) +
               " is persisted");
}

const std::string& printing_record(const rule_context& context) {
  const auto& prints = context.settings().prints;
  if (prints) return *prints;
  throw not_applicable("no record was named at which the processor prints; see --prints");
}

void stray_print(rule_context& context) {
  const std::string& prints = printing_record(context);
  lockstep_daemon& daemon = context.start_initialized();
  daemon.call(records_of({context.payload(), prints, context.payload()}, 101));
  daemon.call(context.records(104, 3));
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

constexpr rule processor_rule_list[] = {
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
     stray_print},
    {"stray-print-in-bulk",
     "text that the processor prints to stdout at 10,000 records does no harm", "P4",
     "A pipe holds 64 KiB. A child that redirects its stdout to a pipe of its own, and does not "
     "empty it, hangs in a print; one that keeps the text grows without a limit.",
     stray_print_in_bulk},
};

}  // namespace

std::span<const rule> processor_rules() { return processor_rule_list; }

}  // namespace kclxx::check
