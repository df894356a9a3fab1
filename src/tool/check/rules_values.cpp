// SPDX-License-Identifier: Apache-2.0
// What may be in a line from the daemon.
#include <optional>

#include "protocol/base64_encoder.hpp"
#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

/// One record's fields, each as its JSON; those that are empty are left out. Data that is not given
/// is a payload that the child understands.
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

void null_position(rule_context& context) {
  lockstep_daemon& daemon = context.start();
  action first = daemon.initialize_at("TRIM_HORIZON");
  first.line = R"({"action":"initialize","shardId":")" + daemon.shard_id() +
               R"(","sequenceNumber":null,"subSequenceNumber":null})";
  daemon.call(first);
}

void null_values(rule_context& context) {
  takes(context, {.data = "null"}, "with null data");
  takes(context, {.partition_key = "null"}, "with a null partitionKey");
  takes(context, {.arrival = "null"}, "with a null approximateArrivalTimestamp");
  context.start_initialized().call(raw_records(to_json(context, {}), 101, "null"),
                                   "with a null millisBehindLatest");
}

void empty_data(rule_context& context) { takes(context, {.data = R"("")"}); }

void long_lag(rule_context& context) {
  context.start_initialized().call(raw_records(to_json(context, {}), 101, "31536000000"));
}

void missing_fields(rule_context& context) {
  action batch = raw_records(to_json(context, {.arrival = "", .sub_sequence_number = ""}), 101);
  batch.line = batch.line.substr(0, batch.line.rfind(",\"millisBehindLatest\"")) + "}";
  context.start_initialized().call(batch);
}

void floating_point_times(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.call(raw_records(to_json(context, {.arrival = "1700000000000.25"}), 101, "1200.0"));
  daemon.call(
      raw_records(to_json(context, {.sequence_number = R"("102")", .arrival = "1.7E12"}), 102));
}

void unknown_fields(rule_context& context) {
  lockstep_daemon& daemon = context.start();
  action first = daemon.initialize_at("TRIM_HORIZON");
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
  action first = daemon.initialize_at("TRIM_HORIZON");
  first.line.insert(1, R"("pendingCheckpoint":{"shardId":"other","sequenceNumber":["1"]},)");
  daemon.call(first);
  std::string record = to_json(context, {});
  record.insert(1, R"("schema":{"data":"bm90IHRoaXM=","versions":[{"sequenceNumber":"1"}]},)");
  daemon.call(raw_records(record, 101));
}

/// An ending whose plain form is not answered has a rule of its own.
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
  action first = daemon.initialize_at("TRIM_HORIZON");
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

void escaped_text(rule_context& context) {
  takes(context, {.partition_key = R"("\"quoted\" \\ \/ \n\t\u0000 \u00e9 \ud83d\ude00")"});
}

void non_ascii_text(rule_context& context) {
  takes(context, {.partition_key = "\"cl\u00e9 \u30ad\u30fc \U0001F511\""});
}

void line_separators(rule_context& context) {
  takes(context, {.partition_key = "\"next\u0085line \u2028 paragraph \u2029\""});
}

void invalid_utf8(rule_context& context) {
  takes(context, {.partition_key = "\"cl\xe9 \xff\""});
  takes(context, {.partition_key = R"("half a pair \ud800")"});
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

constexpr rule value_rule_list[] = {
    {"null-position", "initialize may have null for its position", "P14",
     "The fields are nullable in the daemon; a child that fails on it ends the whole worker.",
     null_position},
    {"null-values",
     "a record's data, partitionKey and approximateArrivalTimestamp, and millisBehindLatest, may "
     "be null",
     "P14, P19",
     "The daemon writes null where what it has read has no value. Kinesis fills all of them today; "
     "a child that fails on null exits or hangs, and meets the same record again after the "
     "restart: a crash loop of the whole worker.",
     null_values},
    {"empty-data", "a record's data may be empty", "P19",
     "Producers write records without data. A child that takes empty for missing fails on it: a "
     "crash loop of the whole worker.",
     empty_data},
    {"long-lag", "millisBehindLatest may be more than 32 bits hold", "P15",
     "A stream keeps records for up to 365 days, and 2^31 ms are 25. A child that fails on a lag "
     "of a year cannot read an old stream from its beginning.",
     long_lag},
    {"missing-fields",
     "millisBehindLatest, approximateArrivalTimestamp and subSequenceNumber may be missing", "P14",
     "The first daemons of 1.x did not write them.", missing_fields},
    {"floating-point-times", "times may be floating point numbers", "P15",
     "Daemons write whole milliseconds; some old ones wrote other forms of numbers.",
     floating_point_times},
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
    {"escaped-text", "escapes in a partition key are understood", "P2", dies, escaped_text},
    {"non-ascii-text", "a partition key may be any UTF-8 text", "P2", dies, non_ascii_text},
    {"line-separators", "U+0085, U+2028 and U+2029 in a partition key do not end a line", "P2",
     "JSON does not escape them, and the daemon's lines end with \\n alone. Some libraries split "
     "lines at them; half a batch is then no JSON: a crash loop of the whole worker.",
     line_separators},
    {"invalid-utf8",
     "bytes that are not UTF-8 and half a surrogate pair in a partition key do no harm", "P8",
     "The daemon writes in the JVM's default charset: below JDK 18 with LANG=C, or in a Latin-1 "
     "locale, keys that are not ASCII arrive as other bytes. A child that fails on them is in a "
     "crash loop.",
     invalid_utf8},
    {"long-sequence-number", "a sequence number of 120 digits is kept as it is", "P16",
     "Sequence numbers are text: Kinesis uses 56 digits. One that went through a floating point "
     "or 64-bit number is refused by the daemon, or resumes at another place.",
     long_sequence_number},
};

}  // namespace

std::span<const rule> value_rules() { return value_rule_list; }

}  // namespace kclxx::check
