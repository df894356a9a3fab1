// SPDX-License-Identifier: Apache-2.0
// How the child writes, whatever it writes.
#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

/// Two short lives with both endings, as far as the child goes along: these rules are about how
/// it writes. `look` is called at the end of each, with the last reaction.
template <class Look>
void short_lives(rule_context& on, Look look) {
  for (const auto& ending : {lease_lost(), shard_ended()}) {
    daemon& with = on.start();
    reaction last;
    for (const auto& what :
         {with.initialize_at("TRIM_HORIZON"), records(101, 3), records(104, 3), ending}) {
      last = with.attempt(what);
      if (!last.is_answered) break;
    }
    with.leave();
    look(with, last);
    if (with.messages == 0) throw not_applicable(last.seen);
  }
}

void lines_complete(rule_context& on) {
  short_lives(on, [](const daemon&, const reaction& last) {
    if (!last.unfinished.empty()) throw violation(last.seen);
  });
}

void newline_before(rule_context& on) {
  short_lives(on, [](const daemon& with, const reaction&) {
    if (with.glued > 0) {
      throw hint(std::to_string(with.glued) + " of " + std::to_string(with.messages) +
                 " messages did not begin with a newline");
    }
  });
}

void no_noise(rule_context& on, bool is_message) {
  short_lives(on, [&](const daemon& with, const reaction&) {
    for (const noise_seen& noise : with.noise) {
      if (noise.is_message == is_message) throw violation(quoted(noise.line) + ": " + noise.why);
    }
  });
}

void only_messages(rule_context& on) { no_noise(on, false); }

void exact_fields(rule_context& on) { no_noise(on, true); }

void one_status(rule_context& on) {
  short_lives(on, [](const daemon& with, const reaction& last) {
    if (last.is_wrong) throw violation(last.seen);
    if (last.is_answered && !with.late.empty()) {
      throw violation("after the last action's status: " + quoted(with.late.front()));
    }
  });
}

void line_in_pieces(rule_context& on) {
  daemon& with = on.start_initialized();
  const action whole = records(101, 3);
  const std::size_t half = whole.line.size() / 2;
  with.peer().send(whole.line.substr(0, half));
  const auto lines = with.drain(on.with().quiet);
  if (!lines.empty()) throw violation("half a line was answered: " + quoted(lines.front()));
  action rest = whole;
  rest.line = whole.line.substr(half);
  with.call(rest);
}

void nothing_between(rule_context& on) {
  daemon& with = on.start_initialized();
  for (const auto& what : {records(101, 3), records(104, 3)}) {
    with.prepare(what);
    const auto lines = with.drain(on.with().quiet);
    if (!lines.empty()) {
      throw violation("after the status for processRecords, with no action open: " +
                      quoted(lines.front()));
    }
  }
}

constexpr rule rules[] = {
    {"lines-complete", "every message ends with a newline", "P2",
     "The daemon reads lines. It waits for the rest of one that does not end, and the shard "
     "hangs.",
     lines_complete},
    {"newline-before", "every message begins with a newline, too", "P3",
     "Text without a newline that the processor or a library writes to stdout becomes part of the "
     "next message. The daemon skips that line, and the shard hangs. There is no harm as long as "
     "nothing else is written to stdout.",
     newline_before},
    {"only-messages", "nothing but messages is written to stdout", "P4",
     "The daemon skips what it cannot read, with a line in its log for each. Where that was the "
     "status, the shard hangs.",
     only_messages},
    {"exact-fields", "messages have the fields that the daemon knows, and no others", "P20",
     "The daemon skips a message with a field that it does not know, or of a type that it cannot "
     "read, and continues to wait: the shard hangs.",
     exact_fields},
    {"line-in-pieces", "a line that comes in pieces is taken as one", "P7",
     "The daemon writes 8 KiB at a time, and a pipe holds 64 KiB: most batches arrive in pieces, "
     "with pauses. A child that takes a piece for a line exits or hangs.",
     line_in_pieces},
    {"one-status", "each action is answered by one status", "P24",
     "The daemon takes a second status for that of the next action. One of another name ends "
     "the whole worker, with all its shards; one of the same name reports a batch as processed "
     "that was not.",
     one_status},
    {"nothing-between", "nothing is written between a status and the next action", "P25",
     "Between actions the daemon reads nothing, for hours on an idle shard: a checkpoint waits "
     "there unanswered, and after the last action it is lost.",
     nothing_between},
};

}  // namespace

std::span<const rule> framing_rules() { return rules; }

}  // namespace kclxx::check
