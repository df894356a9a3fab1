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

std::ostream& operator<<(std::ostream& out, const child_message& line) {
  std::visit(overloaded{
                 [&](const blank&) { out << "an empty line"; },
                 [&](const ignored_line& a) { out << "ignored: " << a.why; },
                 [&](const child_status& a) {
                   out << "status for " << a.response_for.value_or("nothing");
                 },
                 [&](const child_checkpoint& a) { print(out, a); },
                 [&](const unexpected_message& a) { out << "a daemon's " << a.action; },
                 [&](const null_message&) { out << "null"; },
             },
             line);
  return out;
}

std::ostream& operator<<(std::ostream& out, const daemon_event& event) {
  std::visit(overloaded{
                 [&](const answered& a) {
                   print(out, a.asked) << " answered: " << a.error.value_or("ok");
                   if (a.attempted) out << ", at the lease: " << *a.attempted;
                 },
                 [&](const skipped& a) { out << "skipped (" << a.why << "): " << a.line; },
                 [&](const returned& a) { out << protocol::action_name(a.kind) << " returned"; },
                 [&](const failed& a) { out << "failed: " << a.why; },
                 [&](const shard_end_not_checkpointed&) {
                   out << "the end of the shard is not checkpointed";
                 },
                 [&](const close_input&) { out << "close the child's input"; },
                 [&](const lost_line& a) { out << "nobody reads: " << a.line; },
                 [&](const worker_ended& a) { out << "the worker ends: " << a.why; },
             },
             event);
  return out;
}

}  // namespace kclxx::daemon_model
