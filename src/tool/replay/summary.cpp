// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/summary.hpp"

#include <utility>

namespace kclxx::replay {

void diagnostics::add(std::size_t transcript_line, std::string what, std::string_view child_line) {
  constexpr std::size_t most_shown = 200;
  ++count_;
  if (first_.size() == most_kept) return;
  std::string shown(child_line.substr(0, most_shown));
  if (child_line.size() > most_shown) shown += "...";
  first_.push_back({transcript_line, std::move(what), std::move(shown)});
}

void totals::add(const totals& other) noexcept {
  records += other.records;
  data_bytes += other.data_bytes;
  line_bytes += other.line_bytes;
  batches += other.batches;
  checkpoints_asked += other.checkpoints_asked;
  checkpoints_answered += other.checkpoints_answered;
  checkpoints_failed += other.checkpoints_failed;
  successors += other.successors;
  callbacks.add(other.callbacks);
}

}  // namespace kclxx::replay
