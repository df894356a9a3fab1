// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tool/lockstep/lockstep_daemon.hpp"

namespace kclxx::check {

using namespace tool;  // lockstep_daemon, which plays the rules

/// The child is right under the daemon, and could still do better; what() is how.
class hint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How long to listen where nothing may come, and how long a piece of a line is kept back.
inline constexpr std::chrono::milliseconds quiet{200};
/// How long an answer is kept back where the rule is that it may be late.
inline constexpr std::chrono::milliseconds lateness{2000};

struct settings {
  time_limits limits{};
  /// The data of the records, in turn. When it is empty, the records have a word that a child may
  /// not understand.
  std::vector<std::string> payloads{};
  /// The data of a record at which the user's processor throws.
  std::optional<std::string> poison{};
  /// The data of a record at which the user's processor prints text without a newline to stdout.
  std::optional<std::string> prints{};
  /// Goes into the ids of the shards, so that a processor that keeps a state for each shard does
  /// not find that of an earlier run.
  std::uint64_t run = 0;
};

using child_starter = std::function<std::unique_ptr<dialogue>()>;

/// Gives a rule's script its children.
class rule_context {
 public:
  rule_context(std::string_view rule_name, const child_starter& starter,
               const check::settings& settings)
      : rule_name_(rule_name), starter_(starter), settings_(settings) {}

  /// Ends the last child, and starts a new one for a shard of its own. Nothing is sent yet.
  lockstep_daemon& start(const sequence_position& resume_at = sequence_position("TRIM_HORIZON"));
  /// As start(), and the child has answered initialize. Errors: not_applicable.
  lockstep_daemon& start_initialized(
      const sequence_position& resume_at = sequence_position("TRIM_HORIZON"));
  /// As start_initialized(), and the child has answered the records 101 to 103.
  lockstep_daemon& start_with_batch();

  enum class former_child { ends_first, stays };
  /// Starts a new child for the shard of the former child, at the position that is persisted.
  /// Nothing is sent yet. A former child that stays can still be used. Precondition: there is a
  /// former child.
  lockstep_daemon& start_again(former_child former);

  /// Small records with sequence numbers counted up from `first`.
  [[nodiscard]] action records(std::uint64_t first, std::size_t count) const;
  /// User records of one aggregated record, with sub-sequence numbers counted up from `first`.
  [[nodiscard]] action aggregated_records(std::string_view sequence_number, std::size_t count,
                                          std::uint64_t first = 0) const;
  /// A payload that the child understands. Different numbers give different ones, if there are any.
  [[nodiscard]] std::string payload(std::uint64_t number = 0) const;
  /// A payload that the child understands, with blanks up to this size.
  [[nodiscard]] std::string payload_of_size(std::size_t size) const;

  [[nodiscard]] const check::settings& settings() const noexcept { return settings_; }
  /// The end of what the last child wrote to stderr.
  [[nodiscard]] std::string error_text();
  /// Ends the children.
  void end();
  /// The first lockstep_daemon::refused of the children that were ended; empty when there is none.
  [[nodiscard]] const std::string& refused() const noexcept { return refused_; }
  /// Whether a child that was ended has missed the time limit of a step.
  [[nodiscard]] bool has_timed_out() const noexcept { return has_timed_out_; }

 private:
  [[nodiscard]] std::string next_shard_id();
  void end(std::unique_ptr<lockstep_daemon>& daemon);
  [[nodiscard]] std::vector<std::string> payloads(std::size_t count) const;
  [[nodiscard]] action with_note(action batch) const;

  std::string_view rule_name_;
  const child_starter& starter_;
  const check::settings& settings_;
  std::uint64_t started_shards_ = 0;
  std::string refused_;
  bool has_timed_out_ = false;
  std::unique_ptr<lockstep_daemon> former_;
  std::unique_ptr<lockstep_daemon> daemon_;
};

/// Errors: breach, unless this is persisted when shutdownRequested is answered.
void expect_persisted(const lockstep_daemon& daemon, const sequence_position& last);

/// One rule of docs/protocol.md.
struct rule {
  std::string_view name;      ///< what --only takes
  std::string_view expected;  ///< one sentence
  std::string_view cites;     ///< rules of docs/protocol.md: "P31" or "P41, P45"
  std::string_view why;       ///< what a breach leads to under the real daemon
  /// Returns when the child keeps the rule. Errors: breach, hint, not_applicable.
  void (*script)(rule_context&);
};

/// All rules, in the order in which they are reported. The first one is initialize: a child that
/// breaks it is not tried with any other rule.
const std::vector<rule>& all_rules();

// The parts of all_rules(). Each has a file of its own.
std::span<const rule> action_rules();
std::span<const rule> line_rules();
std::span<const rule> checkpoint_rules();
std::span<const rule> ending_rules();

struct result {
  enum class verdict { passed, failed, skipped };
  verdict is = verdict::passed;
  std::string seen{};  ///< what a failed rule saw, why one was skipped, or a passed rule's hint
  std::string error_text{};  ///< the end of the child's stderr, if the rule failed
  std::chrono::milliseconds took{};
  /// The rule was skipped since the child missed the limit of a step, so a fault may be hidden.
  bool has_timed_out = false;
};

/// Plays the rule's script. Errors: what the starter throws.
result run_rule(const rule& rule, const child_starter& starter, const settings& settings);

/// The version line and the plan.
void write_tap_header(std::ostream& out, std::size_t rules);
/// One test line. A rule that failed, or has a hint, is followed by a block with what was expected,
/// what was seen and why it matters. `number` counts from 1.
void write_tap(std::ostream& out, std::size_t number, const rule& rule, const result& result);

struct finished_rule {
  check::rule rule;
  check::result result;
};

/// How many of the rules have this verdict.
std::size_t count(const std::vector<finished_rule>& rules, result::verdict verdict);

/// The beginning of what write_junit() writes, which tells an earlier result from another file.
inline constexpr std::string_view junit_beginning =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kclxx check -- ";
/// The whole run as JUnit XML. `command` is what was checked.
void write_junit(std::ostream& out, const std::string& command,
                 const std::vector<finished_rule>& rules);

}  // namespace kclxx::check
