// SPDX-License-Identifier: Apache-2.0
// The form of the lines, in both directions.
#include <optional>
#include <utility>

#include "protocol/base64.hpp"
#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

// How the child writes lines, and how lines come to it, whatever they say.

/// Plays two short lives, with both endings, until the child leaves an action unanswered: the rules
/// that use this are about how it writes. `look` is called after each life, with the last reaction.
template <class Look>
void short_lives(rule_context& context, Look look) {
  for (const auto& ending : {lease_lost(), shard_ended()}) {
    lockstep_daemon& daemon = context.start();
    reaction last;
    for (const auto& action :
         {daemon.initialize(), context.records(101, 3), context.records(104, 3), ending}) {
      last = daemon.attempt(action);
      if (!last.is_answered) break;
    }
    daemon.leave();
    look(daemon, last);
    if (daemon.messages == 0) throw not_applicable(last.seen);
  }
}

void newline_before(rule_context& context) {
  short_lives(context, [](const lockstep_daemon& daemon, const reaction&) {
    if (daemon.glued_messages > 0) {
      throw hint(std::to_string(daemon.glued_messages) + " of " + std::to_string(daemon.messages) +
                 " messages did not begin with a newline");
    }
  });
}

void no_noise(rule_context& context, bool is_message) {
  short_lives(context, [&](const lockstep_daemon& daemon, const reaction&) {
    for (const noise_seen& noise : daemon.noise) {
      if (noise.is_message == is_message) throw breach(in_quotes(noise.line) + ": " + noise.why);
    }
  });
}

void only_messages(rule_context& context) {
  no_noise(context, false);
  // Where checkpoints fail a child may print.
  for (const char* error : {"ThrottlingException", "ShutdownException"}) {
    lockstep_daemon& daemon = context.start_initialized();
    daemon.fail_writes(error);
    daemon.attempt_all({context.records(101, 3), context.records(104, 3), shutdown_requested()});
    for (const noise_seen& noise : daemon.noise) {
      if (!noise.is_message) throw breach(in_quotes(noise.line) + ": " + noise.why);
    }
  }
}

void one_status(rule_context& context) {
  short_lives(context, [](const lockstep_daemon& daemon, const reaction& last) {
    if (last.is_wrong) throw breach(last.seen);
    if (last.is_answered && !daemon.late.empty()) {
      throw breach("after the last action's status: " + in_quotes(daemon.late.front()));
    }
  });
}

void null_line(rule_context& context) {
  short_lives(context, [](const lockstep_daemon& daemon, const reaction&) {
    for (const noise_seen& noise : daemon.noise) {
      const auto message = daemon_model::parse_child_message(noise.line);
      if (std::holds_alternative<daemon_model::null_message>(message)) {
        throw breach("a line that is " + in_quotes(noise.line));
      }
    }
  });
}

void line_in_pieces(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  const action whole = context.records(101, 3);
  const std::size_t half = whole.line.size() / 2;
  daemon.write(whole.line.substr(0, half), "");
  const auto lines = daemon.drain(quiet);
  if (!lines.empty()) throw breach("half a line was answered: " + in_quotes(lines.front()));
  action second_half = whole;
  second_half.line = whole.line.substr(half);
  daemon.call(second_half);
}

void long_line_in_pieces(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  // The characters have two, three and four bytes, so pieces of 8 KiB cut many of them.
  std::string long_key;
  for (int i = 0; i < 80; ++i) long_key += "\u00e9\u30ad\U0001F511";  // 240 of 256 characters
  action batch = context.records(101, 90);
  const std::string_view key = R"("partitionKey":"key")";
  std::string line;
  std::size_t done = 0;
  for (auto found = batch.line.find(key); found != std::string::npos;
       found = batch.line.find(key, done)) {
    line.append(batch.line, done, found - done).append("\"partitionKey\":\"" + long_key + "\"");
    done = found + key.size();
  }
  line.append(batch.line, done);
  constexpr std::size_t piece = 8192;
  std::size_t sent = 0;
  for (; line.size() - sent > piece; sent += piece) daemon.write(line.substr(sent, piece), "");
  batch.line = line.substr(sent);
  daemon.call(batch);
}

/// Plays a batch and the shard's end, each to a child of its own: there children ask for
/// checkpoints, and most of them wait for the answers. `change` sets lockstep_daemon::write_answer.
template <class Change>
void with_other_answers(rule_context& context, Change change) {
  bool is_judged = false;
  for (const auto& last : {context.records(104, 3), shard_ended()}) {
    lockstep_daemon& daemon = context.start_with_batch();
    daemon.checkpoints.clear();
    change(daemon);
    const auto reaction = daemon.attempt(last, daemon.limit() + 3 * lateness);
    if (daemon.checkpoints.empty()) continue;
    is_judged = true;
    if (!reaction.is_answered) throw breach(reaction.seen);
  }
  if (!is_judged) throw not_applicable("it asked for no checkpoint");
}

void answer_in_pieces(rule_context& context) {
  with_other_answers(context, [](lockstep_daemon& daemon) {
    daemon.write_answer = [&daemon](const std::string& line) {
      daemon.answer(line.substr(0, line.size() / 2), "");
      daemon.pause(quiet);
      return daemon.answer(line.substr(line.size() / 2));
    };
  });
}

void answer_late(rule_context& context) {
  with_other_answers(context, [](lockstep_daemon& daemon) {
    daemon.write_answer = [&daemon, pause = lateness](const std::string& line) mutable {
      daemon.pause(std::exchange(pause, std::chrono::milliseconds(0)));
      return daemon.answer(line);
    };
  });
}

void unknown_fields_in_answer(rule_context& context) {
  with_other_answers(context, [](lockstep_daemon& daemon) {
    daemon.write_answer = [&daemon](std::string line) {
      line.insert(1, R"("tomorrow":{"error":"Text","sequenceNumber":["1"]},"attempts":3,)");
      return daemon.answer(line);
    };
  });
}

void unread_answers(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  // A pipe holds 64 KiB: some 470 of these answers.
  constexpr std::string_view as_kinesis =
      "49590338271490256608559692538361571095921575989136588898";
  daemon.call(context.aggregated_records(as_kinesis, 2000));
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
}

void nothing_between(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  const auto expect_silence = [&](std::chrono::milliseconds time) {
    const auto lines = daemon.drain(time);
    if (lines.empty()) return;
    throw breach("after the status for processRecords, with no action open: " +
                 in_quotes(lines.front()));
  };
  daemon.prepare(context.records(101, 3));
  expect_silence(quiet);
  daemon.prepare(context.records(104, 3));
  expect_silence(lateness);  // a timer may write
}

// What a line from the daemon may say.

/// The JSON of each of a record's fields. A field with an empty text is left out. Data that is not
/// given is a payload that the child understands.
struct fields {
  std::optional<std::string> data{};
  std::string partition_key = R"("key")";
  std::string sequence_number = R"("101")";
  std::string arrival = "1700000000000";
  std::string sub_sequence_number = "0";
};

std::string valid_data(const rule_context& context) {
  std::string json = "\"";
  protocol::append_base64(json, context.payload());
  return json + "\"";
}

std::string to_json(const rule_context& context, const fields& record) {
  std::string out = R"({"action":"record")";
  const auto add = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out.append(",\"").append(name).append("\":").append(value);
  };
  add("data", record.data.value_or(valid_data(context)));
  add("partitionKey", record.partition_key);
  add("sequenceNumber", record.sequence_number);
  add("approximateArrivalTimestamp", record.arrival);
  add("subSequenceNumber", record.sub_sequence_number);
  return out + "}";
}

void takes(rule_context& context, const fields& record, std::string_view circumstances = {}) {
  context.start_initialized().call(raw_records(to_json(context, record), 101), circumstances);
}

void unknown_fields(rule_context& context) {
  lockstep_daemon& daemon = context.start();
  action first = daemon.initialize();
  first.line.insert(1, R"("tomorrow":"text","pendingCheckpoint":null,)");
  daemon.call(first);
  std::string record = to_json(context, {});
  record.insert(1, R"("explicitHashKey":null,"schema":[1,2.5,"text"],)");
  action batch = raw_records(record, 101);
  batch.line.insert(1, R"("cacheEntryTime":"2026-01-01T00:00:00Z","isAtShardEnd":false,)");
  daemon.call(batch);
}

void unknown_objects(rule_context& context) {
  lockstep_daemon& daemon = context.start();
  action first = daemon.initialize();
  first.line.insert(1, R"("pendingCheckpoint":{"shardId":"other","sequenceNumber":["1"]},)");
  daemon.call(first);
  std::string record = to_json(context, {});
  record.insert(1, R"("schema":{"data":"bm90IHRoaXM=","versions":[{"sequenceNumber":"1"}]},)");
  daemon.call(raw_records(record, 101));
}

/// An ending that the child does not answer in its plain form is not judged: another rule does so.
void unknown_fields_in_ending(rule_context& context) {
  bool is_judged = false;
  for (action ending : {shutdown_requested(), lease_lost(), shard_ended()}) {
    if (!context.start_initialized().attempt_all({context.records(101, 3), ending})) continue;
    is_judged = true;
    lockstep_daemon& daemon = context.start_with_batch();
    ending.line.insert(1, R"("checkpoint":"103","tomorrow":7,)");
    daemon.call(ending);
  }
  if (!is_judged) throw not_applicable("it answers no ending");
}

void field_order(rule_context& context) {
  lockstep_daemon& daemon = context.start();
  action first = daemon.initialize();
  first.line = R"({"subSequenceNumber":0,"sequenceNumber":"TRIM_HORIZON","shardId":")" +
               daemon.shard_id() + R"(","action":"initialize"})";
  daemon.call(first);
  action batch = raw_records("", 101);
  batch.line =
      R"({"millisBehindLatest":0,"records":[{"subSequenceNumber":0,"sequenceNumber":"101",)"
      R"("partitionKey":"key","data":)" +
      valid_data(context) +
      R"(,"approximateArrivalTimestamp":1700000000000,"action":"record"}],)"
      R"("action":"processRecords"})";
  daemon.call(batch);
}

void long_sequence_number(rule_context& context) {
  const std::string number = "9" + std::string(118, '0') + "1";
  lockstep_daemon& daemon = context.start_initialized();
  action batch = raw_records(to_json(context, {.sequence_number = "\"" + number + "\""}), 101);
  batch.largest = sequence_position(number);
  daemon.call(batch);
  daemon.attempt(shutdown_requested());
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    if (position_of(checkpoint) != batch.largest) {
      throw breach(to_string(checkpoint) + ", where \"" + number + "\" was delivered");
    }
  }
}

constexpr std::string_view dies =
    "A child that fails on it exits or hangs. The whole worker ends, with all its shards, and "
    "meets the same record again after its restart: a crash loop.";

constexpr rule line_rule_list[] = {
    {"lines-complete", "every message ends with a newline", "P2",
     "The daemon reads lines. It waits for the rest of one that does not end, and the shard "
     "hangs.",
     [](rule_context& context) {
       short_lives(context, [](const lockstep_daemon&, const reaction& last) {
         if (!last.unfinished.empty()) throw breach(last.seen);
       });
     }},
    {"newline-before", "every message begins with a newline, too", "P3",
     "Text without a newline that the processor or a library writes to stdout becomes part of the "
     "next message. The daemon skips that line, and the shard hangs. There is no harm as long as "
     "nothing else is written to stdout.",
     newline_before},
    {"only-messages", "nothing but messages is written to stdout", "P4",
     "The daemon skips what it cannot read, with a line in its log for each. Where that was the "
     "status, the shard hangs.",
     only_messages},
    {"null-line", "no line is the word null", "P23",
     "The daemon takes null for a message and fails on it: the whole worker ends, with all its "
     "shards. Serializers write it for a result that does not exist.",
     null_line},
    {"exact-fields", "messages have the fields that the daemon knows, and no others", "P20",
     "The daemon skips a message with a field that it does not know, or of a type that it cannot "
     "read, and continues to wait: the shard hangs.",
     [](rule_context& context) { no_noise(context, true); }},
    {"line-in-pieces", "a line that comes in pieces is taken as one", "P7",
     "The daemon writes 8 KiB at a time, and a pipe holds 64 KiB: most batches arrive in pieces, "
     "with pauses. A child that takes a piece for a line exits or hangs.",
     line_in_pieces},
    {"long-line-in-pieces", "a line of 80 KB with non-ASCII text is read in pieces of 8 KiB",
     "P2, P7",
     "A piece ends anywhere, also between the bytes of a character. A child that decodes each "
     "piece alone as UTF-8 fails on such a batch, and gets it again after each restart: a "
     "crash loop of the whole worker.",
     long_line_in_pieces},
    {"answer-in-pieces", "the answer to a checkpoint may come in pieces", "P7, P39",
     "An answer is a line like any other. A child that takes a piece of it for the answer believes "
     "in an error, or fails, with a position that is persisted.",
     answer_in_pieces},
    {"answer-late", "the answer to a checkpoint may be late", "P39, P41",
     "The daemon's own SDK retries a throttled checkpoint first: the answer comes after up to a "
     "minute. A child that waits for less exits or reads the answer as that of the next "
     "checkpoint.",
     answer_late},
    {"unread-answers", "the answers to checkpoints are read before they fill the pipe", "P39",
     "The daemon writes an answer before it reads on. A child that asks for hundreds of "
     "checkpoints before it reads an answer fills both pipes. The daemon and the child then wait "
     "for one another, and the shard hangs without a message.",
     unread_answers},
    {"unknown-fields-in-answer",
     "fields of the answer to a checkpoint that the child does not know are ignored", "P13",
     "A later daemon adds fields. A child that fails on them ends every worker on the day of the "
     "daemon's update, at the first checkpoint.",
     unknown_fields_in_answer},
    {"one-status", "each action is answered by one status", "P24",
     "The daemon takes a second status for that of the next action. One of another name ends "
     "the whole worker, with all its shards; one of the same name reports a batch as processed "
     "that was not.",
     one_status},
    {"nothing-between", "nothing is written between a status and the next action", "P25",
     "Between actions the daemon reads nothing, for hours on an idle shard: a checkpoint waits "
     "there unanswered, and after the last action it is lost.",
     nothing_between},
    {"null-position", "initialize may have null for its position", "P14",
     "The fields are nullable in the daemon; a child that fails on it ends the whole worker.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start();
       action first = daemon.initialize();
       first.line = R"({"action":"initialize","shardId":")" + daemon.shard_id() +
                    R"(","sequenceNumber":null,"subSequenceNumber":null})";
       daemon.call(first);
     }},
    {"null-values",
     "a record's data, partitionKey and approximateArrivalTimestamp, and millisBehindLatest, may "
     "be null",
     "P14, P19",
     "The daemon writes null where what it has read has no value. Kinesis fills all of them today; "
     "a child that fails on null exits or hangs, and meets the same record again after the "
     "restart: a crash loop of the whole worker.",
     [](rule_context& context) {
       takes(context, {.data = "null"}, "with null data");
       takes(context, {.partition_key = "null"}, "with a null partitionKey");
       takes(context, {.arrival = "null"}, "with a null approximateArrivalTimestamp");
       context.start_initialized().call(raw_records(to_json(context, {}), 101, "null"),
                                        "with a null millisBehindLatest");
     }},
    {"empty-data", "a record's data may be empty", "P19",
     "Producers write records without data. A child that takes empty for missing fails on it: a "
     "crash loop of the whole worker.",
     [](rule_context& context) { takes(context, {.data = R"("")"}); }},
    {"long-lag", "millisBehindLatest may be more than 32 bits hold", "P15",
     "A stream keeps records for up to 365 days, and 2^31 ms are 25. A child that fails on a lag "
     "of a year cannot read an old stream from its beginning.",
     [](rule_context& context) {
       context.start_initialized().call(raw_records(to_json(context, {}), 101, "31536000000"));
     }},
    {"missing-fields",
     "millisBehindLatest, approximateArrivalTimestamp and subSequenceNumber may be missing", "P14",
     "The first daemons of 1.x did not write them.",
     [](rule_context& context) {
       action batch =
           raw_records(to_json(context, {.arrival = "", .sub_sequence_number = ""}), 101);
       batch.line = batch.line.substr(0, batch.line.rfind(",\"millisBehindLatest\"")) + "}";
       context.start_initialized().call(batch);
     }},
    {"floating-point-times", "times may be floating point numbers", "P15",
     "Daemons write whole milliseconds; some old ones wrote other forms of numbers.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.call(raw_records(to_json(context, {.arrival = "1700000000000.25"}), 101, "1200.0"));
       daemon.call(raw_records(
           to_json(context, {.sequence_number = R"("102")", .arrival = "1.7E12"}), 102));
     }},
    {"unknown-fields", "fields that the child does not know are ignored", "P13",
     "A later daemon adds fields, as earlier ones did. A child that fails on them ends every "
     "worker on the day of the daemon's update.",
     unknown_fields},
    {"unknown-objects", "unknown fields that hold objects are ignored, too", "P13",
     "Fields inside such an object are not those that the child knows, even if the names are the "
     "same. A child that fails on it ends every worker on the day of the daemon's update.",
     unknown_objects},
    {"unknown-fields-in-ending",
     "fields that the child does not know are ignored in shutdownRequested, leaseLost and "
     "shardEnded",
     "P13",
     "The daemon's documentation lists a field checkpoint in them, which no daemon sends so far.",
     unknown_fields_in_ending},
    {"field-order", "fields may come in any order", "P13",
     "The order of a JSON object's fields has no meaning; the daemon's library may change it.",
     field_order},
    {"escaped-text", "escapes in a partition key are understood", "P2", dies,
     [](rule_context& context) {
       takes(context, {.partition_key = R"("\"quoted\" \\ \/ \n\t\u0000 \u00e9 \ud83d\ude00")"});
     }},
    {"non-ascii-text", "a partition key may be any UTF-8 text", "P2", dies,
     [](rule_context& context) {
       takes(context, {.partition_key = "\"cl\u00e9 \u30ad\u30fc \U0001F511\""});
     }},
    {"line-separators", "U+0085, U+2028 and U+2029 in a partition key do not end a line", "P2",
     "JSON does not escape them, and the daemon's lines end with \\n alone. Some libraries split "
     "lines at them; half a batch is then no JSON: a crash loop of the whole worker.",
     [](rule_context& context) {
       takes(context, {.partition_key = "\"next\u0085line \u2028 paragraph \u2029\""});
     }},
    {"invalid-utf8",
     "bytes that are not UTF-8 and half a surrogate pair in a partition key do no harm", "P8",
     "The daemon writes in the JVM's default charset: below JDK 18 with LANG=C, or in a Latin-1 "
     "locale, keys that are not ASCII arrive as other bytes. A child that fails on them is in a "
     "crash loop.",
     [](rule_context& context) {
       takes(context, {.partition_key = "\"cl\xe9 \xff\""});
       takes(context, {.partition_key = R"("half a pair \ud800")"});
     }},
    {"long-sequence-number", "a sequence number of 120 digits is kept as it is", "P16",
     "Sequence numbers are text: Kinesis uses 56 digits. One that went through a floating point "
     "or 64-bit number is refused by the daemon, or resumes at another place.",
     long_sequence_number},
};

}  // namespace

std::span<const rule> line_rules() { return line_rule_list; }

}  // namespace kclxx::check
