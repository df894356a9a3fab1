// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/faults.hpp"

#include <charconv>
#include <set>
#include <system_error>

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

trigger parse_trigger(std::string_view name, std::string_view value) {
  constexpr std::string_view record = "record:";
  trigger result;
  std::string_view digits = value;
  if (value.starts_with(record)) {
    result.in = trigger::unit::record;
    digits.remove_prefix(record.size());
  }
  if (!read_number(digits, result.number) || result.number == 0) {
    fail(name, value, "the number of a batch from 1 on, or record: and the number of a record");
  }
  return result;
}

void set(faults& faults, std::string_view name, std::string_view value) {
  if (name == "throttle") {
    faults.throttle = probability(name, value);
  } else if (name == "dependency") {
    faults.dependency = probability(name, value);
  } else if (name == "unknown-action") {
    faults.unknown_action = probability(name, value);
  } else if (name == "shutdown-at") {
    faults.shutdown_at = parse_trigger(name, value);
  } else if (name == "lease-lost-at") {
    faults.lease_lost_at = parse_trigger(name, value);
  } else if (name == "end-of-input-at") {
    faults.end_of_input_at = parse_trigger(name, value);
  } else if (name == "kill-at") {
    faults.kill_at = parse_trigger(name, value);
  } else if (name == "kill") {
    faults.kill = probability(name, value);
    if (faults.kill >= 1) fail(name, value, "a probability below 1, or no life would ever end");
  } else if (name == "seed") {
    if (!read_number(value, faults.seed)) fail(name, value, "a number from 0 on");
  } else {
    throw std::invalid_argument("there is no fault '" + std::string(name) +
                                "'; there are throttle, dependency, unknown-action, shutdown-at, "
                                "lease-lost-at, end-of-input-at, kill-at, kill, and seed");
  }
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view shard) noexcept {
  std::uint64_t result = tool::random_numbers::mix(seed + 1);
  for (const char c : shard) {
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

fault_draws::fault_draws(std::uint64_t seed, std::string_view shard) noexcept
    : random_(seed_of(seed, shard)) {}

bool fault_draws::draw(double probability) noexcept {
  ++count_;
  const bool result = random_.fraction() < probability;
  was_true_ |= result;
  return result;
}

}  // namespace kclxx::replay
