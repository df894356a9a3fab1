// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/faults.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include "tool/text.hpp"

namespace kclxx::replay {

using tool::read_number;

namespace {

[[noreturn]] void fail(std::string_view name, std::string_view value, const char* wanted) {
  throw std::invalid_argument("the fault " + std::string(name) + "=" + std::string(value) +
                              " needs " + wanted);
}

struct drawn_fault {
  const char* name;
  double faults::*probability;
};
/// In the order of fault_schedule::draws_.
constexpr std::array drawn_faults{drawn_fault{"throttle", &faults::throttle},
                                  drawn_fault{"dependency", &faults::dependency},
                                  drawn_fault{"kill", &faults::kill}};

struct numbered_fault {
  const char* name;
  std::optional<std::uint64_t> faults::*batch;
};
/// In the order of fault_schedule::batch_fault.
constexpr std::array numbered_faults{numbered_fault{"shutdown-at", &faults::shutdown_at},
                                     numbered_fault{"lease-lost-at", &faults::lease_lost_at},
                                     numbered_fault{"end-of-input-at", &faults::end_of_input_at},
                                     numbered_fault{"kill-at", &faults::kill_at}};

void set(faults& chosen, std::string_view name, std::string_view value) {
  for (const drawn_fault& fault : drawn_faults) {
    if (name != fault.name) continue;
    double& probability = chosen.*fault.probability;
    if (!read_number(value, probability) || !(probability >= 0 && probability <= 1)) {
      fail(name, value, "a probability from 0 to 1");
    }
    if (chosen.kill >= 1) fail(name, value, "a probability below 1, or no life would ever end");
    return;
  }
  for (const numbered_fault& fault : numbered_faults) {
    if (name != fault.name) continue;
    if (!read_number(value, (chosen.*fault.batch).emplace()) || chosen.*fault.batch == 0U) {
      fail(name, value, "the number of a batch from 1 on");
    }
    return;
  }
  if (name != "seed") {
    throw std::invalid_argument("there is no fault '" + std::string(name) +
                                "'; there are throttle, dependency, shutdown-at, "
                                "lease-lost-at, end-of-input-at, kill-at, kill, and seed");
  }
  if (!read_number(value, chosen.seed)) fail(name, value, "a number from 0 on");
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view name) noexcept {
  std::uint64_t result = tool::random_numbers::mix(seed + 1);
  for (const char c : name) {
    result = tool::random_numbers::mix(result ^ static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace

faults parse_faults(std::string_view text) {
  faults result;
  std::set<std::string_view> names;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view fault = text.substr(0, comma);
    const std::size_t equals = fault.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument("the fault '" + std::string(fault) +
                                  "' has no value: NAME=VALUE");
    }
    const std::string_view name = fault.substr(0, equals);
    set(result, name, fault.substr(equals + 1));
    if (!names.insert(name).second) {
      throw std::invalid_argument("the fault " + std::string(name) + " is there twice");
    }
    if (comma == std::string_view::npos) return result;
    text.remove_prefix(comma + 1);
  }
}

fault_draws::fault_draws(std::uint64_t seed, std::string_view name) noexcept
    : random_(seed_of(seed, name)) {}

bool fault_draws::draw(double probability) noexcept {
  ++count_;
  const bool result = random_.fraction() < probability;
  was_true_ |= result;
  return result;
}

void fault_schedule::begin_shard(std::string_view id) {
  if (!draws_.empty()) return;  // the draws of a successor continue those of the former child
  for (const drawn_fault& fault : drawn_faults) {
    draws_.emplace_back(chosen_.seed, std::string(id) + "/" + fault.name);
  }
}

bool fault_schedule::draw(std::size_t fault_index) noexcept {
  if (draws_.empty()) return false;
  return draws_[fault_index].draw(chosen_.*drawn_faults.at(fault_index).probability);
}

bool fault_schedule::is_at_next_batch(batch_fault fault) const noexcept {
  return chosen_.*numbered_faults.at(fault).batch == batches_ + 1;
}

void fault_schedule::begin_successor() noexcept {
  if (happened_.test(kill)) chosen_.kill_at.reset();
  batches_ = records_ = 0;
  after_line_ = after_line::nothing;
  happened_.reset(lease_loss);
}

void fault_schedule::skip(std::uint64_t records, bool is_whole_batch) noexcept {
  records_ += records;
  if (is_whole_batch) ++batches_;
}

bool fault_schedule::shutdown_replaces_batch() noexcept {
  happened_.set(shutdown, is_at_next_batch(shutdown));
  return happened_.test(shutdown);
}

void fault_schedule::begin_batch(std::uint64_t records) noexcept {
  happened_.set(lease_loss, is_at_next_batch(lease_loss));
  if (is_at_next_batch(kill)) {
    after_line_ = after_line::kill;
  } else if (is_at_next_batch(end_of_input)) {
    after_line_ = after_line::end_of_input;
  }
  ++batches_;
  records_ += records;
}

fault_schedule::after_line fault_schedule::take_what_follows_line() noexcept {
  if (after_line_ == after_line::kill) happened_.set(kill);
  if (after_line_ == after_line::end_of_input) happened_.set(end_of_input);
  return std::exchange(after_line_, after_line::nothing);
}

bool fault_schedule::draw_kill() noexcept { return draw(2); }

std::optional<std::string> fault_schedule::checkpoint_failure() {
  if (draw(0)) return "ThrottlingException";
  if (draw(1)) return "KinesisClientLibDependencyException";
  return std::nullopt;
}

std::vector<std::string> fault_schedule::unmet() const {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < numbered_faults.size(); ++i) {
    const numbered_fault& fault = numbered_faults.at(i);
    const std::optional<std::uint64_t> batch = chosen_.*fault.batch;
    if (!batch || happened_.test(i)) continue;
    const std::string number = std::to_string(*batch);
    notes.push_back(std::string(fault.name) + "=" + number +
                    (*batch > batches_
                         ? " was not reached: the last was batch " + std::to_string(batches_)
                         : " did not happen: batch " + number +
                               " was persisted before, so that no successor got it"));
  }
  for (std::size_t i = 0; i < draws_.size(); ++i) {
    const double probability = chosen_.*drawn_faults.at(i).probability;
    if (probability == 0 || draws_[i].was_true()) continue;
    std::ostringstream text;
    text << drawn_faults.at(i).name << "=" << probability << " did not happen: there were "
         << draws_[i].count() << " checkpoints";
    notes.push_back(text.str());
  }
  return notes;
}

bool fault_schedule::had_fault() const noexcept {
  return happened_.any() || std::any_of(draws_.begin(), draws_.end(),
                                        [](const fault_draws& draws) { return draws.was_true(); });
}

}  // namespace kclxx::replay
