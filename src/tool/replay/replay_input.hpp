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

/// How a transcript begins. It decides on the order in which the transcripts of a shard are played.
struct beginning {
  std::string shard;
  sequence_position position;
  std::string started;  ///< the header's time; empty in a file that has only the daemon's lines

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

  /// Reads the first lines. std::nullopt: it does not begin with initialize, or cannot be read; the
  /// player reports that. Precondition: it is no text, and open() was not called.
  /// Blocking: until the first lines are there. Errors: tool::cancelled.
  [[nodiscard]] std::optional<beginning> look_at_beginning();
  /// A source of the whole transcript. A pipe can be opened once. Errors: std::system_error.
  [[nodiscard]] std::unique_ptr<transcript::byte_source> open();

 private:
  class rewindable_source;

  std::string name_;
  std::optional<std::string_view> text_;
  /// The source of a pipe whose first lines were read, which cannot be read a second time.
  std::unique_ptr<rewindable_source> looked_at_;
};

/// Groups the inputs by their shards. A group has indices, in the order of the positions where the
/// transcripts begin, and then of the times when they were started. An input of an unknown shard is
/// a group of its own.
/// Blocking: until the first lines of each input are there. Errors: tool::cancelled.
std::vector<std::vector<std::size_t>> by_shard(std::vector<replay_input>& inputs);

}  // namespace kclxx::replay
