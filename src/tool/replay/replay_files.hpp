// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tool/replay/options.hpp"
#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

/// The name of a transcript's file, or where its text is from. Lifetime: of the text, that of the
/// call.
struct replay_input {
  std::string name;
  std::optional<std::string_view> text{};
};

/// Plays transcripts, each against a child of its own, `parallel` at a time. What is wrong with
/// one of them is in its part of the result.
/// Errors: cancelled; std::system_error when no thread can be started.
replay_result replay_files(const std::vector<replay_input>& inputs,
                           const std::vector<std::string>& child, const replay::options& options,
                           unsigned parallel);

/// Plays them without faults, then with those of `options`, and compares what the child left in
/// `effects`. The words of `child` and the name `effects` may have effect_directories::placeholder.
/// The result is that of the second run.
/// Errors: the same; command_error when the first run failed or left no effects; those of
/// effect_directories.
replay_result replay_files_twice(const std::vector<replay_input>& inputs,
                                 const std::vector<std::string>& child,
                                 const replay::options& options, unsigned parallel,
                                 const std::string& effects);

}  // namespace kclxx::tool
