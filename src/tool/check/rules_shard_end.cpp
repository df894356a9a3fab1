// SPDX-License-Identifier: Apache-2.0
// The shard's end, where a missing checkpoint costs the child shards.
#include <algorithm>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

const sequence_position& shard_end() {
  static const sequence_position end("SHARD_END");
  return end;
}

void expect_end(const lockstep_daemon& with) {
  if (with.row.checkpoint() == shard_end()) return;
  std::string text = "the status, and " + to_string(with.row.checkpoint()) + " is persisted";
  const auto at_end = [](const auto& checkpoint) {
    return checkpoint.during == protocol::action_kind::shard_ended;
  };
  const auto asked = std::find_if(with.checkpoints.rbegin(), with.checkpoints.rend(), at_end);
  if (asked == with.checkpoints.rend()) throw violation(text + "; no checkpoint was asked for");
  text += "; the last thing asked for was " + to_string(*asked);
  throw violation(text + (asked->error ? ", which failed with " + *asked->error : ""));
}

/// Whether the end is answered at all has a rule of its own, unless a checkpoint failed in it.
void end_shard(lockstep_daemon& with, const action& how = shard_ended()) {
  const reaction came = with.attempt(how);
  if (came.is_answered) return;
  if (with.has_failed()) throw violation(came.seen);
  throw not_applicable(came.seen);
}

void after_records(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  end_shard(with);
  expect_end(with);
}

void after_stored(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  if (with.row.checkpoint() != sequence_position("103")) {
    throw not_applicable("it had not persisted the last position before the shard's end");
  }
  end_shard(with);
  expect_end(with);
}

void without_records(rule_context& on) {
  lockstep_daemon& with = on.start_initialized(sequence_position("300"));
  end_shard(with);
  expect_end(with);
}

void empty_shard(rule_context& on) {
  for (const char* where : {"TRIM_HORIZON", "LATEST"}) {
    lockstep_daemon& with = on.start_initialized(sequence_position(where));
    end_shard(with);
    expect_end(with);
  }
}

void old_end(rule_context& on) {
  for (const char* reason : {"TERMINATE", "SHARD_END"}) {
    lockstep_daemon& with = on.start_initialized();
    with.prepare(records(101, 3));
    end_shard(with, old_shutdown(reason));
    expect_end(with);
  }
}

void throttled(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.row.set_fault([left = 2](const sequence_position& at) mutable -> std::optional<std::string> {
    if (at != shard_end() || left == 0) return std::nullopt;
    --left;
    return "ThrottlingException";
  });
  end_shard(with);
  expect_end(with);
}

/// The end cannot be persisted. The child may take `limit` to find that out.
void leaves_without_status(rule_context& on, const std::string& error,
                           std::chrono::milliseconds limit) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.row.set_fault([&](const sequence_position& at) -> std::optional<std::string> {
    if (at != shard_end()) return std::nullopt;
    return error;
  });
  const reaction came = with.attempt(shard_ended(), limit);
  if (came.is_answered) expect_end(with);
  if (with.failed_with(error) == nullptr) throw not_applicable(came.seen);
  if (!came.is_gone) throw violation(came.seen);
  const auto end = with.leave();
  if (!end || end->is_success()) throw violation(came.seen);
}

void failed_for_good(rule_context& on) {
  leaves_without_status(on, "InvalidStateException", on.with().limit);
}

void gives_up(rule_context& on) {
  leaves_without_status(on, "ThrottlingException", on.with().retry_limit);
}

void lease_is_gone(rule_context& on) {
  lockstep_daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.row.lose();
  end_shard(with);
  if (with.failed_with("ShutdownException") == nullptr) {
    throw not_applicable("it asked for no checkpoint at the shard's end");
  }
}

constexpr std::string_view child_shards =
    "The daemon finishes a shard only when its end is persisted. Otherwise the child shards "
    "are never read, although the child reported success.";

constexpr rule rules[] = {
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
     "a checkpoint of the end that is throttled twice is retried before the status", "P50",
     "There is no later opportunity: the daemon does not ask the child again. The child "
     "shards are not read before a restart.",
     throttled},
    {"shard-end-failed",
     "no status follows when the end could not be persisted; the child exits with a non-zero "
     "status",
     "P50",
     "A status reports success and loses the child shards until someone notices. A child that "
     "neither answers nor exits hangs the shard. One that exits ends the worker: its restart tries "
     "again.",
     failed_for_good},
    {"shard-end-gives-up",
     "when the checkpoint of the end is throttled every time the child exits in time with a "
     "non-zero status",
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

std::span<const rule> shard_end_rules() { return rules; }

}  // namespace kclxx::check
