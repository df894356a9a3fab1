// SPDX-License-Identifier: Apache-2.0
#include "tool/check/rule.hpp"

#include <algorithm>
#include <utility>

#include "base/fnv.hpp"

namespace kclxx::check {

lockstep_daemon& rule_context::start(const sequence_position& resume_at) {
  end(daemon_);  // the one before ends first: it may hold what the next one needs
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

// As Kinesis names them; the digits are a hash of what makes this child another one.
std::string rule_context::next_shard_id() {
  kclxx::detail::fnv_hash hash;
  hash.add(rule_name_);
  hash.add("/" + std::to_string(settings_.run) + "/" + std::to_string(++started_));
  return shard_name(hash.value() % 1'000'000'000'000);
}

lockstep_daemon& rule_context::start_initialized(const sequence_position& resume_at) {
  lockstep_daemon& started = start(resume_at);
  started.prepare(
      started.initialize_at(resume_at.sequence_number(), resume_at.sub_sequence_number()));
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
  std::vector<std::string> all;
  all.reserve(count);
  for (std::uint64_t number = 0; number < count; ++number) all.push_back(payload(number));
  return all;
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
  static const std::vector<rule> all = [] {
    std::vector<rule> rules;
    for (const auto part : {action_rules, line_rules, checkpoint_rules, ending_rules}) {
      for (const rule& next : part()) rules.push_back(next);
    }
    return rules;
  }();
  return all;
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

}  // namespace kclxx::check
