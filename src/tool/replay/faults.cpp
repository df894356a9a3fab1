// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/faults.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace kclxx::replay {

namespace {

[[noreturn]] void fail(std::string_view name, std::string_view value, const char* wanted) {
  throw std::invalid_argument("the fault " + std::string(name) + "=" + std::string(value) +
                              " needs " + wanted);
}

template <class Number>
bool read_number(std::string_view text, Number& result) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  return error == std::errc() && end == text.data() + text.size();
}

using batch = std::optional<std::uint64_t>;

struct drawn_fault {
  const char* name;
  double faults::*probability;
};
// In the order of fault_schedule's draws.
constexpr std::array drawn{drawn_fault{"throttle", &faults::throttle},
                           drawn_fault{"dependency", &faults::dependency},
                           drawn_fault{"kill", &faults::kill}};

struct fault_at_batch {
  const char* name;
  batch faults::*at;
};
// In the order of fault_schedule::point.
constexpr std::array at_batches{fault_at_batch{"shutdown-at", &faults::shutdown_at},
                                fault_at_batch{"lease-lost-at", &faults::lease_lost_at},
                                fault_at_batch{"end-of-input-at", &faults::end_of_input_at},
                                fault_at_batch{"kill-at", &faults::kill_at}};

void set(faults& chosen, std::string_view name, std::string_view value) {
  for (const drawn_fault& one : drawn) {
    if (name != one.name) continue;
    double& probability = chosen.*one.probability;
    if (!read_number(value, probability) || !(probability >= 0 && probability <= 1)) {
      fail(name, value, "a probability from 0 to 1");
    }
    if (chosen.kill >= 1) fail(name, value, "a probability below 1, or no life would ever end");
    return;
  }
  for (const fault_at_batch& one : at_batches) {
    if (name != one.name) continue;
    if (!read_number(value, (chosen.*one.at).emplace()) || chosen.*one.at == 0U) {
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
  if (!draws_.empty()) return;  // a successor's continue
  for (const drawn_fault& one : drawn) {
    draws_.emplace_back(chosen_.seed, std::string(id) + "/" + one.name);
  }
}

bool fault_schedule::draw(std::size_t which) noexcept {
  return !draws_.empty() && draws_[which].draw(chosen_.*drawn.at(which).probability);
}

bool fault_schedule::is_next(point one) const noexcept {
  return chosen_.*at_batches.at(one).at == batches_ + 1;
}

void fault_schedule::begin_successor() noexcept {
  if (was_met_.test(kill)) chosen_.kill_at.reset();
  batches_ = records_ = 0;
  after_line_ = after_line::nothing;
  was_met_.reset(lease_loss);
}

void fault_schedule::skip(std::uint64_t records, bool is_whole_batch) noexcept {
  records_ += records;
  if (is_whole_batch) ++batches_;
}

bool fault_schedule::shutdown_replaces_it() noexcept {
  was_met_.set(shutdown, is_next(shutdown));
  return was_met_.test(shutdown);
}

void fault_schedule::begin_batch(std::uint64_t records) noexcept {
  was_met_.set(lease_loss, is_next(lease_loss));
  if (is_next(kill)) {
    after_line_ = after_line::kill;
  } else if (is_next(end_of_input)) {
    after_line_ = after_line::end_of_input;
  }
  ++batches_;
  records_ += records;
}

fault_schedule::after_line fault_schedule::take_what_follows_line() noexcept {
  if (after_line_ == after_line::kill) was_met_.set(kill);
  if (after_line_ == after_line::end_of_input) was_met_.set(end_of_input);
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
  for (std::size_t i = 0; i < at_batches.size(); ++i) {
    const batch& at = chosen_.*at_batches.at(i).at;
    if (!at || was_met_.test(i)) continue;
    const std::string number = std::to_string(*at);
    notes.push_back(std::string(at_batches.at(i).name) + "=" + number +
                    (*at > batches_
                         ? " was not reached: the last was batch " + std::to_string(batches_)
                         : " did not happen: batch " + number +
                               " was persisted before, so that no successor got it"));
  }
  for (std::size_t i = 0; i < draws_.size(); ++i) {
    const double probability = chosen_.*drawn.at(i).probability;
    if (probability == 0 || draws_[i].was_true()) continue;
    std::ostringstream text;
    text << drawn.at(i).name << "=" << probability << " did not happen: there were "
         << draws_[i].count() << " checkpoints";
    notes.push_back(text.str());
  }
  return notes;
}

bool fault_schedule::had_fault() const noexcept {
  return was_met_.any() || std::any_of(draws_.begin(), draws_.end(),
                                       [](const fault_draws& one) { return one.was_true(); });
}

}  // namespace kclxx::replay
