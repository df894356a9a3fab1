// SPDX-License-Identifier: Apache-2.0
#include "session/action.hpp"

#include <ostream>

#include "base/overloaded.hpp"

namespace kclxx::session {

bool call::operator==(const call& other) const {
  return what == other.what && batch.begin() == other.batch.begin() &&
         batch.size() == other.batch.size() && shard_id == other.shard_id &&
         start_position == other.start_position;
}

log_line::log_line(log_level severity, std::string_view message) : level(severity) {
  for (const char c : message) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      text.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 0xf]);
    } else {
      text += c;
    }
  }
}

const char* to_string(callback value) noexcept {
  switch (value) {
    case callback::initialize:
      return "initialize";
    case callback::process_records:
      return "process_records";
    case callback::lease_lost:
      return "lease_lost";
    case callback::shard_ended:
      return "shard_ended";
    case callback::shutdown_requested:
      return "shutdown_requested";
  }
  return "?";
}

const char* to_string(timer value) noexcept {
  switch (value) {
    case timer::retry:
      return "retry";
    case timer::pace:
      return "pace";
    case timer::report:
      return "report";
    case timer::grace:
      return "grace";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const action& one) {
  std::visit(overloaded{
                 [&](const write_checkpoint& a) { out << "write checkpoint " << a.position; },
                 [&](const write_status& a) { out << "write status " << a.action; },
                 [&](const call& a) {
                   out << "call " << to_string(a.what);
                   if (a.what == callback::process_records) out << " with " << a.batch.size();
                 },
                 [&](const complete& a) {
                   out << "complete " << a.waiter << ": "
                       << (a.result ? a.result.message() : std::string("persisted"));
                 },
                 [&](const arm_timer& a) {
                   out << "arm " << to_string(a.which) << " timer " << a.after.count() << " ms";
                 },
                 [&](const log_line& a) { out << "log: " << a.text; },
                 [&](const pause_reading&) { out << "pause reading"; },
                 [&](const resume_reading&) { out << "resume reading"; },
                 [&](const request_stop&) { out << "request stop"; },
                 [&](const leave& a) { out << "leave with " << static_cast<int>(a.status); },
             },
             one);
  return out;
}

}  // namespace kclxx::session
