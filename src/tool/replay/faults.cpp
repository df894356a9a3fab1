// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/faults.hpp"

#include <array>
#include <charconv>
#include <set>
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

double probability(std::string_view name, std::string_view value) {
  double result = 0;
  if (!read_number(value, result) || !(result >= 0 && result <= 1)) {
    fail(name, value, "a probability from 0 to 1");
  }
  return result;
}

std::uint64_t batch_number(std::string_view name, std::string_view value) {
  std::uint64_t result = 0;
  if (!read_number(value, result) || result == 0) {
    fail(name, value, "the number of a batch from 1 on");
  }
  return result;
}

void set(faults& faults, std::string_view name, std::string_view value) {
  if (name == "throttle") {
    faults.throttle = probability(name, value);
  } else if (name == "dependency") {
    faults.dependency = probability(name, value);
  } else if (name == "shutdown-at") {
    faults.shutdown_at = batch_number(name, value);
  } else if (name == "lease-lost-at") {
    faults.lease_lost_at = batch_number(name, value);
  } else if (name == "end-of-input-at") {
    faults.end_of_input_at = batch_number(name, value);
  } else if (name == "kill-at") {
    faults.kill_at = batch_number(name, value);
  } else if (name == "kill") {
    faults.kill = probability(name, value);
    if (faults.kill >= 1) fail(name, value, "a probability below 1, or no life would ever end");
  } else if (name == "seed") {
    if (!read_number(value, faults.seed)) fail(name, value, "a number from 0 on");
  } else {
    throw std::invalid_argument("there is no fault '" + std::string(name) +
                                "'; there are throttle, dependency, shutdown-at, "
                                "lease-lost-at, end-of-input-at, kill-at, kill, and seed");
  }
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
  const auto for_fault = [&](const char* name) {
    return fault_draws(chosen_.seed, std::string(id) + "/" + name);
  };
  if (draws_) return;  // a successor's continue
  draws_.emplace(shard_draws{for_fault("throttle"), for_fault("dependency"), for_fault("kill")});
}

void fault_schedule::begin_successor() noexcept {
  if (kill_was_met_) chosen_.kill_at.reset();
  batches_ = records_ = 0;
  after_line_ = after_line::nothing;
  lease_loss_was_met_ = false;
}

void fault_schedule::skip(std::uint64_t records, bool is_whole_batch) noexcept {
  records_ += records;
  if (is_whole_batch) ++batches_;
}

bool fault_schedule::shutdown_replaces_it() noexcept {
  return shutdown_was_met_ = is_next(chosen_.shutdown_at);
}

void fault_schedule::begin_batch(std::uint64_t records) noexcept {
  lease_loss_was_met_ = is_next(chosen_.lease_lost_at);
  if (is_next(chosen_.kill_at)) {
    after_line_ = after_line::kill;
  } else if (is_next(chosen_.end_of_input_at)) {
    after_line_ = after_line::end_of_input;
  }
  ++batches_;
  records_ += records;
}

fault_schedule::after_line fault_schedule::take_what_follows_line() noexcept {
  const after_line taken = std::exchange(after_line_, after_line::nothing);
  kill_was_met_ |= taken == after_line::kill;
  end_of_input_was_met_ |= taken == after_line::end_of_input;
  return taken;
}

bool fault_schedule::draw_kill() noexcept { return draws_ && draws_->kill.draw(chosen_.kill); }

std::optional<std::string> fault_schedule::checkpoint_failure() {
  if (!draws_) return std::nullopt;
  if (draws_->throttle.draw(chosen_.throttle)) return "ThrottlingException";
  if (draws_->dependency.draw(chosen_.dependency)) return "KinesisClientLibDependencyException";
  return std::nullopt;
}

std::vector<std::string> fault_schedule::unmet() const {
  std::vector<std::string> notes;
  const auto note = [&](const char* name, const std::optional<std::uint64_t>& batch, bool was_met) {
    if (!batch || was_met) return;
    const std::string number = std::to_string(*batch);
    notes.push_back(std::string(name) + "=" + number +
                    (*batch > batches_
                         ? " was not reached: the last was batch " + std::to_string(batches_)
                         : " did not happen: batch " + number +
                               " was persisted before, so that no successor got it"));
  };
  note("shutdown-at", chosen_.shutdown_at, shutdown_was_met_);
  note("lease-lost-at", chosen_.lease_lost_at, lease_loss_was_met_);
  note("end-of-input-at", chosen_.end_of_input_at, end_of_input_was_met_);
  note("kill-at", chosen_.kill_at, kill_was_met_);
  if (!draws_) return notes;
  const auto note_draws = [&](const char* name, double probability, const fault_draws& draws,
                              const char* place) {
    if (probability == 0 || draws.was_true()) return;
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), probability).ptr;
    notes.push_back(std::string(name) + "=" + std::string(text.data(), end) +
                    " did not happen: there were " + std::to_string(draws.count()) + place);
  };
  note_draws("throttle", chosen_.throttle, draws_->throttle, " checkpoints");
  note_draws("dependency", chosen_.dependency, draws_->dependency, " checkpoints");
  note_draws("kill", chosen_.kill, draws_->kill, " checkpoints");
  return notes;
}

bool fault_schedule::had_fault() const noexcept {
  return shutdown_was_met_ || lease_loss_was_met_ || end_of_input_was_met_ || kill_was_met_ ||
         (draws_ && (draws_->throttle.was_true() || draws_->dependency.was_true() ||
                     draws_->kill.was_true()));
}

}  // namespace kclxx::replay
