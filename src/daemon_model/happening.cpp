// SPDX-License-Identifier: Apache-2.0
// How what happens prints, so that a test and a report read as a dialogue.
#include <ostream>

#include "base/overloaded.hpp"
#include "daemon_model/shard_consumer.hpp"

namespace kclxx::daemon_model {

namespace {

std::ostream& print(std::ostream& out, const child_checkpoint& asked) {
  if (!asked.sequence_number) return out << "checkpoint null";
  out << "checkpoint " << *asked.sequence_number;
  if (asked.sub_sequence_number) out << "/" << *asked.sub_sequence_number;
  return out;
}

}  // namespace

const char* to_string(call_kind value) noexcept {
  switch (value) {
    case call_kind::initialize:
      return "initialize";
    case call_kind::process_records:
      return "processRecords";
    case call_kind::lease_lost:
      return "leaseLost";
    case call_kind::shard_ended:
      return "shardEnded";
    case call_kind::shutdown_requested:
      return "shutdownRequested";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const child_line& line) {
  std::visit(overloaded{
                 [&](const blank&) { out << "an empty line"; },
                 [&](const ignored_line& one) { out << "ignored: " << one.why; },
                 [&](const child_status& one) {
                   out << "status for " << one.response_for.value_or("nothing");
                 },
                 [&](const child_checkpoint& one) { print(out, one); },
                 [&](const unexpected_message& one) { out << "a daemon's " << one.action; },
                 [&](const null_message&) { out << "null"; },
             },
             line);
  return out;
}

std::ostream& operator<<(std::ostream& out, const happening& one) {
  std::visit(overloaded{
                 [&](const answered& a) {
                   print(out, a.asked) << " answered: " << a.error.value_or("ok");
                   if (a.attempted) out << ", at the lease: " << *a.attempted;
                 },
                 [&](const skipped& a) { out << "skipped (" << a.why << "): " << a.line; },
                 [&](const returned& a) { out << to_string(a.what) << " returned"; },
                 [&](const failed& a) { out << "failed: " << a.why; },
                 [&](const shard_end_not_checkpointed&) {
                   out << "the end of the shard is not checkpointed";
                 },
                 [&](const close_input&) { out << "close the child's input"; },
                 [&](const lost_line& a) { out << "nobody reads: " << a.line; },
                 [&](const worker_ended& a) { out << "the worker ends: " << a.why; },
             },
             one);
  return out;
}

}  // namespace kclxx::daemon_model
