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

using namespace tool;  // the daemon that the rules are played by

/// The child is right under the daemon, and could still do better; what() is how.
class hint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct settings {
  time_limits limits{};
  /// How long to listen where nothing may come, and how long a piece of a line is kept back.
  std::chrono::milliseconds quiet{200};
  /// How long an answer is kept back where the rule is that it may be late.
  std::chrono::milliseconds lateness{2000};
  /// Records' data, which they have in turn; when there is none, a word that a child may not
  /// understand.
  std::vector<std::string> payloads{};
  /// Data of a record at which the user's processor throws.
  std::optional<std::string> poison{};
  /// Data of a record at which the user's processor prints text without a newline to its stdout.
  std::optional<std::string> prints{};
  /// Goes into the shards' ids, so that what a processor keeps by shard does not meet the next run.
  std::uint64_t run = 0;
};

using child_starter = std::function<std::unique_ptr<dialogue>()>;

/// Where a rule's script finds children.
class rule_context {
 public:
  rule_context(std::string_view rule_name, const child_starter& starter,
               const check::settings& settings)
      : rule_name_(rule_name), starter_(starter), settings_(settings) {}

  /// A new child, in the place of the one before, for a shard of its own. Nothing is sent yet.
  lockstep_daemon& start(const sequence_position& resume_at = sequence_position("TRIM_HORIZON"));
  /// A new child that has answered initialize. Errors: not_applicable.
  lockstep_daemon& start_initialized(
      const sequence_position& resume_at = sequence_position("TRIM_HORIZON"));

  /// The same, and it has had the records 101 to 103.
  lockstep_daemon& start_with_batch();

  enum class former_child { ends_first, stays };
  /// A new child for the shard of the last one, which resumes where that one's row is. Nothing is
  /// sent yet. A former child that stays can be used on. Precondition: a child was started.
  lockstep_daemon& start_again(former_child former);

  /// Small records with sequence numbers counted up from `first`.
  [[nodiscard]] action records(std::uint64_t first, std::size_t count) const;
  /// User records of one aggregated record, with sub-sequence numbers counted up from `first`.
  [[nodiscard]] action aggregated_records(std::string_view sequence_number, std::size_t count,
                                          std::uint64_t first = 0) const;
  /// A payload that the child understands, one of several.
  [[nodiscard]] std::string payload(std::uint64_t number = 0) const;
  /// The same, with blanks up to this size.
  [[nodiscard]] std::string payload_of_size(std::size_t size) const;

  [[nodiscard]] const check::settings& settings() const noexcept { return settings_; }
  /// The end of what the last child wrote to stderr.
  [[nodiscard]] std::string error_text();
  /// Ends the children. What is known of all of them then:
  void end();
  /// lockstep_daemon::refused, of the first that has it.
  [[nodiscard]] const std::string& refused() const noexcept { return refused_; }
  [[nodiscard]] bool has_timed_out() const noexcept { return has_timed_out_; }

 private:
  [[nodiscard]] std::string next_shard_id();
  void end(std::unique_ptr<lockstep_daemon>& daemon);
  [[nodiscard]] std::vector<std::string> payloads(std::size_t count) const;
  [[nodiscard]] action with_note(action batch) const;

  std::string_view rule_name_;
  const child_starter& starter_;
  const check::settings& settings_;
  std::uint64_t started_ = 0;
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
  std::string_view why;       ///< what comes of a breach under the real daemon
  /// Returns when the child keeps the rule. Errors: breach, hint, not_applicable.
  void (*script)(rule_context&);
};

/// All of them, in the order in which they are reported. The first is initialize: what does not
/// answer that is tried once.
const std::vector<rule>& all_rules();

// The parts of it, a file each.
std::span<const rule> action_rules();
std::span<const rule> line_rules();
std::span<const rule> checkpoint_rules();
std::span<const rule> ending_rules();

struct result {
  enum class verdict { passed, failed, skipped };
  verdict is = verdict::passed;
  std::string seen{};  ///< of a failed one; of a skipped one the reason; of a passed one a hint
  std::string error_text{};  ///< of a failed one: the end of the child's stderr
  std::chrono::milliseconds took{};
  /// Of a skipped one: the child missed the limit of a step, so a fault may be hidden.
  bool has_timed_out = false;
};

/// Errors: what the starter throws.
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

std::size_t count(const std::vector<finished_rule>& all, result::verdict verdict);

/// What write_junit writes first, by which an earlier result is known.
inline constexpr std::string_view junit_beginning =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kclxx check -- ";
/// The whole run as JUnit XML. `command` is what was checked.
void write_junit(std::ostream& out, const std::string& command,
                 const std::vector<finished_rule>& all);

}  // namespace kclxx::check
