// SPDX-License-Identifier: Apache-2.0
#include "tool/health/shard_figures.hpp"

#include <charconv>
#include <cmath>

namespace kclxx::tool::health {

namespace {

constexpr std::string_view oldest_call = "kclxx_oldest_call_timestamp_seconds";
constexpr std::string_view process_id = "kclxx_process_id";

/// The line of a family that has one sample: what follows its name.
std::string_view sample_of(std::string_view text, std::string_view family) {
  const std::string begin = "\n" + std::string(family) + "{";
  const auto at = text.find(begin);
  if (at == std::string_view::npos) throw garbled_file("it has no " + std::string(family));
  text.remove_prefix(at + begin.size());
  const auto end = text.find('\n');
  if (end == std::string_view::npos) throw garbled_file("it ends within a line");
  return text.substr(0, end);
}

double value_of(std::string_view text, std::string_view family) {
  const std::string_view sample = sample_of(text, family);
  const std::string_view digits = sample.substr(sample.rfind(' ') + 1);
  double value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value) ||
      value < 0) {
    throw garbled_file(std::string(family) + " is not a number");
  }
  return value;
}

/// Without its escapes; a shard's id needs none, as a rule.
std::string shard_of(std::string_view sample) {
  constexpr std::string_view label = "shard=\"";
  const auto at = sample.find(label);
  std::string shard;
  for (auto i = at + label.size(); at != std::string_view::npos && i < sample.size(); ++i) {
    if (sample[i] == '"') return shard;
    if (sample[i] == '\\') ++i;
    if (i < sample.size()) shard += sample[i];
  }
  throw garbled_file(std::string(process_id) + " has no shard");
}

}  // namespace

shard_figures parse_figures(std::string_view text) {
  return {shard_of(sample_of(text, process_id)),
          static_cast<std::uint64_t>(value_of(text, process_id)),
          std::chrono::duration<double>(value_of(text, oldest_call))};
}

}  // namespace kclxx::tool::health
