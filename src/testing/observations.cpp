// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "base/names.hpp"
#include "testing/virtual_worker.hpp"

namespace kclxx::testing {

namespace {

constexpr std::size_t longest_note = 240;

}  // namespace

void observations::answered(const daemon_model::answered& answer, const sequence_position& last) {
  // The model passes over what is persisted already; then the position asked for is it.
  const auto& asked = answer.asked;
  const sequence_position position =
      answer.attempted ? *answer.attempted
      : asked.sequence_number
          ? sequence_position(*asked.sequence_number,
                              static_cast<std::uint64_t>(asked.sub_sequence_number.value_or(0)))
          : last;
  attempts_.push_back({position, answer.error});
  if (answer.attempted && !answer.error) checkpoints_.push_back(position);
  note("daemon", answer.line);
}

void observations::happened(const daemon_model::daemon_event& event) {
  std::ostringstream text;
  text << event;
  note("daemon", text.str());
}

void observations::callback(protocol::action_kind kind) {
  callbacks_.emplace_back(detail::callback_name(kind));
  note("callback", detail::callback_name(kind));
}

void observations::log(const log_entry& entry) {
  log_.push_back(entry);
  note("log", std::string(detail::level_name(entry.level)) + ": " + entry.text);
}

void observations::note(std::string_view source, std::string_view text) {
  std::string& target = dialogue_;
  const std::string time = std::to_string(clock_->elapsed().count());
  target.append(time.size() < 7 ? 7 - time.size() : 0, ' ').append(time).append(" ms  ");
  target.append(source).append(source.size() < 10 ? 10 - source.size() : 0, ' ');
  target.append(text.substr(0, longest_note));
  if (text.size() > longest_note) {
    target.append("... (").append(std::to_string(text.size())).append(" bytes)");
  }
  target += '\n';
}

}  // namespace kclxx::testing
