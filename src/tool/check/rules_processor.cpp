// SPDX-License-Identifier: Apache-2.0
// What cannot be provoked from outside: the user's processor throws, or prints. These need a
// processor that does so at a record with the given data.
#include <cstdint>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

constexpr std::uint64_t poison_number = 105;

/// A child that has had a good batch.
lockstep_daemon& before_poison(rule_context& context) {
  if (!context.settings().poison) {
    throw not_applicable("no record was named at which the processor throws; see --poison");
  }
  return context.start_with_batch();
}

/// Its second record is the poison.
action poisoned_batch(const rule_context& context) {
  return records_of({context.payload(), *context.settings().poison, context.payload()},
                    poison_number - 1);
}

void no_status(rule_context& context) {
  if (before_poison(context).attempt(poisoned_batch(context)).is_answered) {
    throw breach(
        "the batch with the record at which the processor throws was answered with "
        "success");
  }
}

void leaves(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  const auto reaction = daemon.attempt(poisoned_batch(context));
  if (reaction.is_answered) {
    throw breach("it answered the batch with success and stayed");
  }
  if (!reaction.is_gone) throw breach(reaction.seen);
  const auto end = daemon.leave();
  if (!end || end->is_success()) throw breach(reaction.seen);
}

void no_checkpoint(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  const auto reaction = daemon.attempt(poisoned_batch(context));
  // A child that reported success passes the record over with the next checkpoint.
  if (reaction.is_answered) daemon.attempt(shutdown_requested());
  const sequence_position poison(std::to_string(poison_number));
  if (daemon.row.checkpoint().is_number() && daemon.row.checkpoint() >= poison) {
    throw breach("the processor threw at " + to_string(poison) + "; " +
                 to_string(daemon.row.checkpoint()) + " is persisted");
  }
}

void earlier_work(rule_context& context) {
  lockstep_daemon& daemon = before_poison(context);
  daemon.attempt(poisoned_batch(context));
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  if (daemon.row.checkpoint() < sequence_position("103")) {
    throw breach("the batch up to 103/0 was complete; " + to_string(daemon.row.checkpoint()) +
                 " is persisted");
  }
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
    {"poison-status", "a batch in which the processor throws is not answered with success", "P53",
     "The status reports the batch as processed, and the next checkpoint covers its records: "
     "silent loss.",
     no_status},
    {"poison-exit", "the child exits with a non-zero status when the processor throws", "P53",
     "A child that neither answers nor exits hangs the shard without a message.", leaves},
    {"poison-checkpoint", "no checkpoint covers a record at which the processor threw", "P53",
     "The record is never delivered again: silent loss.", no_checkpoint},
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
