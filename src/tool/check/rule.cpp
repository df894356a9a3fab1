// SPDX-License-Identifier: Apache-2.0
#include "tool/check/rule.hpp"

#include <utility>

#include "base/fnv.hpp"

namespace kclxx::check {

lockstep_daemon& rule_context::start(const sequence_position& resume_at) {
  daemon_.reset();  // the one before ends first: it may hold what the next one needs
  daemon_ = std::make_unique<lockstep_daemon>(starter_(), next_shard_id(), with_.limit, resume_at);
  return *daemon_;
}

lockstep_daemon& rule_context::start_again(former_child former) {
  const std::string shard_id = daemon_->shard_id();
  const sequence_position resume_at = daemon_->row.checkpoint();
  if (former == former_child::stays) {
    former_ = std::move(daemon_);
  } else {
    daemon_.reset();
  }
  daemon_ = std::make_unique<lockstep_daemon>(starter_(), shard_id, with_.limit, resume_at);
  return *daemon_;
}

// As Kinesis names them; the digits are a hash of what makes this child another one.
std::string rule_context::next_shard_id() {
  kclxx::detail::fnv_hash hash;
  hash.add(rule_name_);
  hash.add("/" + std::to_string(with_.run) + "/" + std::to_string(++started_));
  const std::string digits = std::to_string(hash.value() % 1'000'000'000'000);
  return "shardId-" + std::string(12 - digits.size(), '0') + digits;
}

lockstep_daemon& rule_context::start_initialized(const sequence_position& resume_at) {
  lockstep_daemon& started = start(resume_at);
  started.prepare(
      started.initialize_at(resume_at.sequence_number(), resume_at.sub_sequence_number()));
  return started;
}

std::string rule_context::error_text() { return daemon_ ? daemon_->peer().error_text() : ""; }

const std::vector<rule>& all_rules() {
  static const std::vector<rule> all = [] {
    std::vector<rule> made;
    for (const auto part : {framing_rules, action_rules, value_rules, checkpoint_rules,
                            shard_end_rules, leaving_rules, processor_rules}) {
      for (const rule& next : part()) made.push_back(next);
    }
    return made;
  }();
  return all;
}

result run_rule(const rule& by, const child_starter& starter, const settings& with) {
  const auto began = std::chrono::steady_clock::now();
  rule_context on(by.name, starter, with);
  result made;
  try {
    by.script(on);
  } catch (const violation& seen) {
    made.is = result::verdict::failed;
    made.seen = seen.what();
    made.error_text = on.error_text();
    made.is_unresponsive = dynamic_cast<const no_response*>(&seen) != nullptr;
  } catch (const hint& better) {
    made.seen = better.what();
  } catch (const not_applicable& reason) {
    made.is = result::verdict::skipped;
    made.seen = reason.what();
  }
  made.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  return made;
}

}  // namespace kclxx::check
