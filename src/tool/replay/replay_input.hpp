// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "tool/transcript/transcript.hpp"

namespace kclxx::replay {

/// What decides when a transcript is played.
struct beginning {
  std::string shard;
  sequence_position position;
  std::string started;  ///< empty in a file that has only the daemon's lines

  auto operator<=>(const beginning&) const = default;
};

/// A transcript that is to be played.
/// Thread safety: none.
class replay_input {
 public:
  /// A file's name; "-" is stdin.
  explicit replay_input(std::string file);
  /// Lifetime: the text outlives the input.
  replay_input(std::string name, std::string_view text);
  replay_input(replay_input&&) noexcept;
  ~replay_input();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_text() const noexcept { return text_.has_value(); }

  /// Precondition: it is no text, and was not opened. std::nullopt: it does not begin with
  /// initialize, or cannot be read; who plays it reports that.
  /// Blocking: for its first lines. Errors: tool::cancelled.
  [[nodiscard]] std::optional<beginning> look_at_beginning();
  /// From the beginning. A pipe can be opened once. Errors: std::system_error.
  [[nodiscard]] std::unique_ptr<transcript::byte_source> open();

 private:
  class rewindable_source;

  std::string name_;
  std::optional<std::string_view> text_;
  std::unique_ptr<rewindable_source> looked_at_;  // of a pipe, which has its first lines once
};

/// The inputs by their shards, as indices: those of one shard in the order of the positions where
/// they begin, then of the times when they were started. An input of an unknown shard is alone.
/// Blocking: for the first lines of each. Errors: tool::cancelled.
std::vector<std::vector<std::size_t>> by_shard(std::vector<replay_input>& inputs);

}  // namespace kclxx::replay
