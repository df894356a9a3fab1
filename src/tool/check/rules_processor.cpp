// SPDX-License-Identifier: Apache-2.0
// What cannot be provoked from outside: the user's processor throws, or prints. These need a
// processor that does so at a record with the given data.
#include <algorithm>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

constexpr std::size_t poison_at = 105;

/// One good batch, and one whose second record is the poison; the reaction to that.
reaction poisoned(rule_context& on, lockstep_daemon*& with) {
  if (!on.with().poison) {
    throw not_applicable("no record was named at which the processor throws; see --poison");
  }
  with = &on.start_initialized();
  with->prepare(records(101, 3));
  return with->attempt(records_of({"payload", *on.with().poison, "payload"}, poison_at - 1));
}

void no_status(rule_context& on) {
  lockstep_daemon* with = nullptr;
  if (poisoned(on, with).is_answered) {
    throw violation(
        "the batch with the record at which the processor throws was answered with "
        "success");
  }
}

void leaves(rule_context& on) {
  lockstep_daemon* with = nullptr;
  const reaction came = poisoned(on, with);
  if (came.is_answered) {
    throw violation("it answered the batch with success and stayed");
  }
  if (!came.is_gone) throw violation(came.seen);
  const auto end = with->leave();
  if (!end || end->is_success()) throw violation(came.seen);
}

void no_checkpoint(rule_context& on) {
  lockstep_daemon* with = nullptr;
  const reaction came = poisoned(on, with);
  // A child that reported success passes the record over with the next checkpoint.
  if (came.is_answered) with->attempt(shutdown_requested());
  const sequence_position poison(std::to_string(poison_at));
  if (with->row.checkpoint().is_number() && with->row.checkpoint() >= poison) {
    throw violation("the processor threw at " + to_string(poison) + "; " +
                    to_string(with->row.checkpoint()) + " is persisted");
  }
}

void earlier_work(rule_context& on) {
  lockstep_daemon* with = nullptr;
  poisoned(on, with);
  if (with->checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  if (with->row.checkpoint() < sequence_position("103")) {
    throw violation("the batch up to 103/0 was complete; " + to_string(with->row.checkpoint()) +
                    " is persisted");
  }
}

void stray_print(rule_context& on) {
  if (!on.with().prints) {
    throw not_applicable("no record was named at which the processor prints; see --prints");
  }
  lockstep_daemon& with = on.start_initialized();
  with.call(records_of({"payload", *on.with().prints, "payload"}, 101));
  with.call(records(104, 3));
}

void stray_print_in_bulk(rule_context& on) {
  if (!on.with().prints) {
    throw not_applicable("no record was named at which the processor prints; see --prints");
  }
  if (!on.start_initialized().attempt(records_of({*on.with().prints}, 101)).is_answered) {
    throw not_applicable("it does not bear one print; see stray-print");
  }
  lockstep_daemon& with = on.start_initialized();
  constexpr std::size_t count = 10000;
  with.call(records_of(std::vector<std::string>(count, *on.with().prints), 101));
  with.call(records(101 + count, 3));
}

constexpr rule rules[] = {
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

std::span<const rule> processor_rules() { return rules; }

}  // namespace kclxx::check
