// SPDX-License-Identifier: Apache-2.0
// The shard's end, where a missing checkpoint costs the child shards.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

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

/// Whether the end is answered at all has a rule of its own, unless a checkpoint failed in it.
void end_shard(lockstep_daemon& daemon, const action& ending = shard_ended()) {
  const auto reaction = daemon.attempt(ending);
  if (reaction.is_answered) return;
  if (daemon.has_failed()) throw breach(reaction.seen);
  throw not_applicable(reaction.seen);
}

void after_records(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  end_shard(daemon);
  expect_end(daemon);
}

void after_stored(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  if (daemon.row.checkpoint() != sequence_position("103")) {
    throw not_applicable("it had not persisted the last position before the shard's end");
  }
  end_shard(daemon);
  expect_end(daemon);
}

void without_records(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized(sequence_position("300"));
  end_shard(daemon);
  expect_end(daemon);
}

void empty_shard(rule_context& context) {
  for (const char* position : {"TRIM_HORIZON", "LATEST"}) {
    lockstep_daemon& daemon = context.start_initialized(sequence_position(position));
    end_shard(daemon);
    expect_end(daemon);
  }
}

void old_end(rule_context& context) {
  for (const char* reason : {"TERMINATE", "SHARD_END"}) {
    lockstep_daemon& daemon = context.start_with_batch();
    end_shard(daemon, old_shutdown(reason));
    expect_end(daemon);
  }
}

void fails_twice(rule_context& context) {
  for (const char* error : {"ThrottlingException", "KinesisClientLibDependencyException"}) {
    lockstep_daemon& daemon = context.start_with_batch();
    daemon.fail_writes(error, 2, shard_end());
    end_shard(daemon);
    expect_end(daemon);
  }
}

/// The end cannot be persisted, for one of these reasons.
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

void fails_for_good(rule_context& context) {
  leaves_without_status(context, {"InvalidStateException", "TomorrowsException"});
}

void gives_up(rule_context& context) {
  leaves_without_status(context, {"ThrottlingException", "KinesisClientLibDependencyException"});
}

void lease_is_gone(rule_context& context) {
  lockstep_daemon& daemon = context.start_with_batch();
  daemon.row.lose();
  end_shard(daemon);
  if (daemon.failed_with("ShutdownException") == nullptr) {
    throw not_applicable("it asked for no checkpoint at the shard's end");
  }
}

constexpr std::string_view child_shards =
    "The daemon finishes a shard only when its end is persisted. Otherwise the child shards "
    "are never read, although the child reported success.";

constexpr rule shard_end_rule_list[] = {
    {"shard-end", "the shard's end is persisted before shardEnded is answered", "P47", child_shards,
     after_records},
    {"shard-end-stored", "the end is persisted, too, when the last position was persisted before",
     "P48",
     "A checkpoint at the last position then does nothing at all (open upstream since 2017); only "
     "one with a null sequence number means the end. Without it the child shards are never read.",
     after_stored},
    {"shard-end-without-records",
     "the end is persisted, too, when nothing was delivered since the restart", "P47",
     "A worker that resumes at the last position of a closed shard has no record whose position it "
     "could use; only a null sequence number means the end. Without it the child shards are never "
     "read.",
     without_records},
    {"shard-end-empty-shard", "the end is persisted, too, of a shard that never had a record",
     "P47",
     "A shard can be split or merged before anything is written to it. There is no position at all "
     "then but TRIM_HORIZON or LATEST, and a checkpoint at one of these finishes nothing: the "
     "child shards are never read.",
     empty_shard},
    {"shard-end-old", "shutdown with TERMINATE or SHARD_END is treated as shardEnded", "P11, P47",
     child_shards, old_end},
    {"shard-end-throttled",
     "a checkpoint of the end that fails twice with ThrottlingException, or with "
     "KinesisClientLibDependencyException, is retried before the status",
     "P50",
     "There is no later opportunity: the daemon does not ask the child again. The child "
     "shards are not read before a restart.",
     fails_twice},
    {"shard-end-failed",
     "no status follows when the end could not be persisted, for InvalidStateException or an error "
     "of an unknown name; the child exits with a non-zero status",
     "P50",
     "A status reports success and loses the child shards until someone notices. A child that "
     "neither answers nor exits hangs the shard. One that exits ends the worker: its restart tries "
     "again.",
     fails_for_good},
    {"shard-end-gives-up",
     "when the checkpoint of the end fails every time with ThrottlingException, or with "
     "KinesisClientLibDependencyException, the child exits in time with a non-zero status",
     "P50",
     "A child that retries without end hangs the shard without a message. A status would lose the "
     "child shards. A child that exits ends the worker: its restart tries again.",
     gives_up},
    {"shard-end-lease-gone",
     "shardEnded is answered even if its checkpoint fails with ShutdownException", "P51",
     "Another worker has the lease and ends the shard. With the status the daemon finds out and "
     "continues; a child that exits ends the worker, with all its shards, without need.",
     lease_is_gone},
};

}  // namespace

std::span<const rule> shard_end_rules() { return shard_end_rule_list; }

}  // namespace kclxx::check
