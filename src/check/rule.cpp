// SPDX-License-Identifier: Apache-2.0
#include "check/rule.hpp"

#include <utility>

namespace kclxx::check {

daemon& stage::start(const sequence_position& resume_at) {
  daemon_.reset();  // the one before ends first: it may hold what the next one needs
  daemon_ = std::make_unique<daemon>(starter_(), with_.limit, resume_at);
  return *daemon_;
}

daemon& stage::start_initialized(const sequence_position& resume_at) {
  daemon& started = start(resume_at);
  started.prepare(initialize_at(resume_at.sequence_number(), resume_at.sub_sequence_number()));
  return started;
}

std::string stage::error_text() { return daemon_ ? daemon_->peer().error_text() : ""; }

const std::vector<rule>& all_rules() {
  static const std::vector<rule> all = [] {
    std::vector<rule> made;
    for (const auto part : {framing_rules, action_rules, value_rules, checkpoint_rules,
                            shard_end_rules, leaving_rules, processor_rules}) {
      for (const rule& one : part()) made.push_back(one);
    }
    return made;
  }();
  return all;
}

result judge(const rule& by, const child_starter& starter, const settings& with) {
  const auto began = std::chrono::steady_clock::now();
  stage on(starter, with);
  result made;
  try {
    by.script(on);
  } catch (const breach& seen) {
    made.is = result::verdict::failed;
    made.seen = seen.what();
    made.error_text = on.error_text();
    made.is_silent = dynamic_cast<const silence*>(&seen) != nullptr;
  } catch (const not_applicable& reason) {
    made.is = result::verdict::skipped;
    made.seen = reason.what();
  }
  made.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  return made;
}

}  // namespace kclxx::check
