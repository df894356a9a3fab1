// SPDX-License-Identifier: Apache-2.0
#include "session/output.hpp"

#include <array>
#include <ostream>
#include <utility>

#include "base/overloaded.hpp"
#include "base/printable.hpp"

namespace kclxx::session {

log_line::log_line(log_level severity, std::string_view message,
                   std::optional<sequence_position> about)
    : level(severity), text(detail::printable(message)), position(std::move(about)) {}

namespace {

/// In the order of timer.
constexpr std::array<const char*, timer_count> timer_names{"retry", "pace", "report", "grace",
                                                           "ended"};

}  // namespace

std::ostream& operator<<(std::ostream& out, const output& value) {
  std::visit(overloaded{
                 [&](const write_checkpoint& a) { out << "write checkpoint " << a.position; },
                 [&](const write_status& a) { out << "write status " << a.action; },
                 [&](const call& a) {
                   out << "call " << detail::callback_name(a.kind);
                   if (a.kind == action_kind::process_records) out << " with " << a.batch.size();
                 },
                 [&](const notify_waiter& a) {
                   out << "notify " << a.waiter << ": "
                       << (a.result ? a.result.message() : std::string("persisted"));
                 },
                 [&](const arm_timer& a) {
                   out << "arm " << timer_names.at(static_cast<std::size_t>(a.timer)) << " timer "
                       << a.after.count() << " ms";
                 },
                 [&](const log_line& a) {
                   out << "log " << detail::level_name(a.level) << ": " << a.text;
                 },
                 [&](const end_calls&) { out << "end calls"; },
                 [&](const request_stop&) { out << "request stop"; },
                 [&](const leave& a) { out << "leave with " << static_cast<int>(a.status); },
             },
             value);
  return out;
}

}  // namespace kclxx::session
