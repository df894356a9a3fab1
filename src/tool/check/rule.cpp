// SPDX-License-Identifier: Apache-2.0
#include "tool/check/rule.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/fnv.hpp"
#include "protocol/json_string.hpp"
#include "tool/text.hpp"

namespace kclxx::check {

lockstep_daemon& rule_context::start(const sequence_position& resume_at) {
  end(daemon_);  // first, since it may hold what the new child needs
  daemon_ =
      std::make_unique<lockstep_daemon>(starter_(), next_shard_id(), settings_.limits, resume_at);
  return *daemon_;
}

lockstep_daemon& rule_context::start_again(former_child former) {
  const std::string shard_id = daemon_->shard_id();
  const sequence_position resume_at = daemon_->row.checkpoint();
  if (former == former_child::stays) {
    former_ = std::move(daemon_);
  } else {
    end(daemon_);
  }
  daemon_ = std::make_unique<lockstep_daemon>(starter_(), shard_id, settings_.limits, resume_at);
  return *daemon_;
}

void rule_context::end(std::unique_ptr<lockstep_daemon>& daemon) {
  if (!daemon) return;
  if (refused_.empty()) refused_ = daemon->refused;
  has_timed_out_ |= daemon->has_timed_out();
  daemon.reset();
}

void rule_context::end() {
  end(former_);
  end(daemon_);
}

// An id as Kinesis makes them, whose digits are a hash of the rule, the run and the child's number.
std::string rule_context::next_shard_id() {
  kclxx::detail::fnv_hash hash;
  hash.add(rule_name_);
  hash.add("/" + std::to_string(settings_.run) + "/" + std::to_string(++started_shards_));
  return shard_name(hash.value() % 1'000'000'000'000);
}

lockstep_daemon& rule_context::start_initialized(const sequence_position& resume_at) {
  lockstep_daemon& started = start(resume_at);
  started.prepare(started.initialize());
  return started;
}

lockstep_daemon& rule_context::start_with_batch() {
  lockstep_daemon& started = start_initialized();
  started.prepare(records(101, 3));
  return started;
}

action rule_context::records(std::uint64_t first, std::size_t count) const {
  return with_note(records_of(payloads(count), first));
}

action rule_context::aggregated_records(std::string_view sequence_number, std::size_t count,
                                        std::uint64_t first) const {
  return with_note(aggregated_records_of(payloads(count), sequence_number, first));
}

action rule_context::with_note(action batch) const {
  if (settings_.payloads.empty() && batch.largest) {
    batch.note = "the data was " + in_quotes(payload()) +
                 ": --data FILE gives a file of what the child understands";
  }
  return batch;
}

std::string rule_context::payload(std::uint64_t number) const {
  const auto& given = settings_.payloads;
  return given.empty() ? "payload" : given[number % given.size()];
}

std::vector<std::string> rule_context::payloads(std::size_t count) const {
  std::vector<std::string> result;
  result.reserve(count);
  for (std::uint64_t number = 0; number < count; ++number) result.push_back(payload(number));
  return result;
}

std::string rule_context::payload_of_size(std::size_t size) const {
  std::string data = payload();
  data.resize(std::max(size, data.size()), ' ');
  return data;
}

std::string rule_context::error_text() { return daemon_ ? daemon_->peer().error_text() : ""; }

void expect_persisted(const lockstep_daemon& daemon, const sequence_position& last) {
  if (daemon.row.checkpoint() == last) return;
  throw breach(to_string(last) + " was delivered; " + to_string(daemon.row.checkpoint()) +
               " is persisted when shutdownRequested is answered");
}

const std::vector<rule>& all_rules() {
  static const std::vector<rule> rules = [] {
    std::vector<rule> result;
    for (const auto part : {action_rules, line_rules, checkpoint_rules, ending_rules}) {
      for (const rule& rule : part()) result.push_back(rule);
    }
    return result;
  }();
  return rules;
}

result run_rule(const rule& rule, const child_starter& starter, const settings& settings) {
  const auto began = std::chrono::steady_clock::now();
  rule_context context(rule.name, starter, settings);
  check::result outcome;
  using enum check::result::verdict;
  try {
    rule.script(context);
  } catch (const breach& seen) {
    outcome.is = failed;
    outcome.seen = seen.what();
  } catch (const hint& better) {
    outcome.seen = better.what();
  } catch (const not_applicable& reason) {
    outcome.is = skipped;
    outcome.seen = reason.what();
  }
  std::string error_text = context.error_text();
  context.end();
  const bool has_hint = outcome.is == passed && !outcome.seen.empty();
  if (outcome.is != failed && !has_hint && !context.refused().empty()) {
    outcome.is = failed;
    outcome.seen = context.refused();
  }
  if (outcome.is == failed) outcome.error_text = std::move(error_text);
  outcome.has_timed_out = outcome.is == skipped && context.has_timed_out();
  outcome.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  return outcome;
}

namespace {

// A JSON string is a YAML one, too.
void write_yaml(std::ostream& out, std::string_view name, std::string_view text) {
  std::string value;
  protocol::append_quoted(value, text);
  out << "  " << name << ": " << value << '\n';
}

/// The text for what follows a test's number in TAP, where '#' would begin a directive.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : tool::printable(text)) {
    if (c == '#' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string seconds(std::chrono::milliseconds time) {
  const std::string fraction = std::to_string(time.count() % 1000);
  return std::to_string(time.count() / 1000) + "." + std::string(3 - fraction.size(), '0') +
         fraction;
}

/// The text for XML 1.0, in content or in an attribute. What is not UTF-8 becomes U+FFFD. A
/// character that XML cannot hold, or that a terminal could obey, becomes '?', but for newlines and
/// tabs.
std::string xml(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const kclxx::detail::character first = kclxx::detail::first_character(text);
    const bool is_layout = first.code == '\n' || first.code == '\t';
    const bool is_bad = (kclxx::detail::is_obeyed(first.code) && !is_layout) ||
                        first.code == 0xfffe || first.code == 0xffff;
    result += !first.is_utf8      ? "\ufffd"
              : is_bad            ? "?"
              : first.code == '&' ? "&amp;"
              : first.code == '<' ? "&lt;"
              : first.code == '>' ? "&gt;"
              : first.code == '"' ? "&quot;"
                                  : text.substr(0, first.size);
    text.remove_prefix(first.size);
  }
  return result;
}

std::string see(const rule& rule) { return "docs/protocol.md, " + std::string(rule.cites); }

void write_case(std::ostream& out, const finished_rule& finished) {
  out << "  <testcase classname=\"kclxx.check\" name=\"" << xml(finished.rule.name) << "\" time=\""
      << seconds(finished.result.took) << "\">\n";
  if (finished.result.is == result::verdict::skipped) {
    out << "    <skipped message=\"" << xml(finished.result.seen) << "\"/>\n";
  } else if (finished.result.is == result::verdict::passed && !finished.result.seen.empty()) {
    out << "    <system-out>hint: " << xml(finished.result.seen) << "</system-out>\n";
  } else if (finished.result.is == result::verdict::failed) {
    out << "    <failure message=\"" << xml(finished.result.seen)
        << "\">expected: " << xml(finished.rule.expected) << "\nseen: " << xml(finished.result.seen)
        << "\nwhy: " << xml(finished.rule.why) << "\nsee: " << xml(see(finished.rule))
        << "</failure>\n";
    if (!finished.result.error_text.empty()) {
      out << "    <system-err>" << xml(finished.result.error_text) << "</system-err>\n";
    }
  }
  out << "  </testcase>\n";
}

}  // namespace

std::size_t count(const std::vector<finished_rule>& rules, result::verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(rules.begin(), rules.end(),
                    [&](const finished_rule& finished) { return finished.result.is == verdict; }));
}

void write_tap_header(std::ostream& out, std::size_t rules) {
  out << "TAP version 13\n1.." << rules << '\n';
}

void write_tap(std::ostream& out, std::size_t number, const rule& rule, const result& result) {
  const bool is_failed = result.is == check::result::verdict::failed;
  out << (is_failed ? "not ok " : "ok ") << number << " - " << rule.name << ": "
      << escaped(rule.expected);
  if (result.is == check::result::verdict::skipped) out << " # SKIP " << escaped(result.seen);
  out << '\n';
  const bool is_hint = result.is == check::result::verdict::passed && !result.seen.empty();
  if (!is_failed && !is_hint) return;
  out << "  ---\n";
  if (is_failed) write_yaml(out, "expected", rule.expected);
  write_yaml(out, is_failed ? "seen" : "hint", result.seen);
  write_yaml(out, "why", rule.why);
  write_yaml(out, "see", see(rule));
  if (!result.error_text.empty()) {
    out << "  stderr:\n";
    std::istringstream lines(result.error_text);
    for (std::string line; std::getline(lines, line);) {
      std::string value;
      protocol::append_quoted(value, line);
      out << "    - " << value << '\n';
    }
  }
  out << "  ...\n";
}

void write_junit(std::ostream& out, const std::string& command,
                 const std::vector<finished_rule>& rules) {
  std::chrono::milliseconds took{};
  for (const finished_rule& finished : rules) took += finished.result.took;
  out << junit_beginning << xml(command) << "\" tests=\"" << rules.size() << "\" failures=\""
      << count(rules, result::verdict::failed) << "\" skipped=\""
      << count(rules, result::verdict::skipped) << "\" errors=\"0\" time=\"" << seconds(took)
      << "\">\n";
  for (const finished_rule& finished : rules) write_case(out, finished);
  out << "</testsuite>\n";
}

}  // namespace kclxx::check
