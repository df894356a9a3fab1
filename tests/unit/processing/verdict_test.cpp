// SPDX-License-Identifier: Apache-2.0
// What becomes of a record after an attempt has failed.
#include "processing/verdict.hpp"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <variant>

#include <kclxx/error.hpp>

#include "support/catch.hpp"

using namespace kclxx;
using namespace kclxx::processing;
using namespace std::chrono_literals;

namespace {

using clock_time = std::chrono::steady_clock::time_point;
using date = std::chrono::system_clock::time_point;

std::string text_of(const verdict& given) {
  struct texts {
    std::string operator()(const verdicts::retry& retry) const {
      return "retry after " + std::to_string(retry.delay.count()) + " ms";
    }
    std::string operator()(const verdicts::complete& skipped) const {
      return "complete " + skipped.reason;
    }
    std::string operator()(const verdicts::park& park) const { return "park " + park.reason; }
    std::string operator()(const verdicts::stop& stop) const { return "stop " + stop.reason; }
    std::string operator()(const verdicts::lease_gone&) const { return "lease gone"; }
  };
  return std::visit(texts{}, given);
}

failure_policy with(failure_policy policy, bad_record what) {
  policy.bad_record = what;
  return policy;
}

struct situation {
  const char* title;
  failure_policy policy;
  failure_facts facts;
  const char* verdict;
};

}  // namespace

TEST_CASE("the verdict on a failed record follows from policy, attempts, age and circuit",
          "[processing][policy]") {
  const failure_policy forever{};
  const failure_policy thrice{.max_attempts = 3};
  const failure_policy minute{.max_age = 60s};
  const failure_policy both{.max_attempts = 3, .max_age = 60s};
  const date noon{1000h};
  const clock_time now{100s};
  const auto at = [&](int attempts, int counted) {
    return failure_facts{
        .attempts = attempts, .counted_attempts = counted, .date = noon, .now = now};
  };
  const auto of_age = [&](std::chrono::milliseconds age) {
    failure_facts facts = at(1, 1);
    facts.arrival = noon - age;
    return facts;
  };
  const auto of = [&](error_kind kind, failure_facts facts) {
    facts.kind = kind;
    return facts;
  };
  const auto probed = [&](clock_time probe, failure_facts facts) {
    facts.next_probe = probe;
    return facts;
  };
  const auto varied = [](std::uint64_t random, failure_facts facts) {
    facts.random = random;
    return facts;
  };
  using enum error_kind;
  const std::vector<situation> table{
      {"by default a record is tried again without end", forever, at(1'000'000, 1'000'000),
       "retry after 5000 ms"},
      {"the first wait is initial_backoff", forever, at(1, 1), "retry after 200 ms"},
      {"each further wait is twice as long", forever, at(4, 4), "retry after 1600 ms"},
      {"no wait is longer than max_backoff", forever, at(6, 6), "retry after 5000 ms"},
      {"max_backoff limits the first wait, too",
       {.initial_backoff = 10s, .max_backoff = 20ms},
       at(1, 1),
       "retry after 20 ms"},
      {"no wait is 0", {.initial_backoff = 0ms, .max_backoff = 0ms}, at(3, 3), "retry after 1 ms"},
      {"up to a half of a wait is left out", forever, varied(100, at(1, 1)), "retry after 100 ms"},
      {"and no more than a half", forever, varied(101, at(1, 1)), "retry after 200 ms"},
      {"below max_attempts it is tried again", thrice, at(2, 2), "retry after 400 ms"},
      {"with max_attempts it is bad", thrice, at(3, 3),
       "stop after 3 attempts (no attempt is left)"},
      {"attempts that are not counted do not make it bad", thrice, at(9, 2), "retry after 5000 ms"},
      {"but the text has all of them", with(thrice, bad_record::skip), at(9, 3),
       "complete after 9 attempts (no attempt is left)"},
      {"a permanent error is bad at once", forever, of(permanent, at(1, 0)),
       "stop after 1 attempt (a permanent error)"},
      {"a bad record is skipped where the policy says so", with(forever, bad_record::skip),
       of(permanent, at(1, 0)), "complete after 1 attempt (a permanent error)"},
      {"or parked", with(forever, bad_record::park), of(permanent, at(2, 0)),
       "park after 2 attempts (a permanent error)"},
      {"a record of just max_age is tried again", minute, of_age(60s), "retry after 200 ms"},
      {"an older one is bad", minute, of_age(60'001ms), "stop after 1 attempt (older than 60 s)"},
      {"without max_age the age does not matter", forever, of_age(999h), "retry after 200 ms"},
      {"a record without an arrival time is never too old", minute, at(1, 1), "retry after 200 ms"},
      {"one that arrives in the future is not", minute, of_age(-24h), "retry after 200 ms"},
      {"a limit as long as can be is no limit",
       {.max_age = std::chrono::seconds::max()},
       of_age(999h),
       "retry after 200 ms"},
      {"an outage makes no record bad", both, of(outage, of_age(999h)), "retry after 200 ms"},
      {"not even after max_attempts", both, of(outage, at(9, 3)), "retry after 5000 ms"},
      {"an open circuit's next probe is the next attempt", forever, probed(now + 30s, at(1, 1)),
       "retry after 30000 ms"},
      {"its wait is rounded up", forever, probed(now + 1500us, at(1, 1)), "retry after 2 ms"},
      {"a probe that is due leaves the policy's wait", forever, probed(now, at(1, 1)),
       "retry after 200 ms"},
      {"an open circuit makes no bad record good", thrice, probed(now + 30s, at(5, 3)),
       "stop after 5 attempts (no attempt is left)"},
      {"nor an old one young", minute, probed(now + 30s, of_age(61s)),
       "stop after 1 attempt (older than 60 s)"},
      {"a lost lease is no failure of the record", with(both, bad_record::park),
       of(lease_gone, at(9, 9)), "lease gone"},
  };
  for (const situation& row : table) {
    CAPTURE(row.title);
    CHECK(text_of(decide(row.policy, row.facts)) == row.verdict);
  }
}

TEST_CASE("the verdict that ends the processing has the exception", "[processing][policy]") {
  const auto thrown = std::make_exception_ptr(std::runtime_error("no"));
  const auto stop = decide({}, {.kind = error_kind::permanent, .thrown = thrown});
  CHECK(std::get<verdicts::stop>(stop).exception == thrown);
  const auto gone = decide({}, {.kind = error_kind::lease_gone, .thrown = thrown});
  CHECK(std::get<verdicts::lease_gone>(gone).exception == thrown);
}

TEST_CASE(
    "an exception's type comes before the policy's functions, and an outage before permanence",
    "[processing][policy]") {
  failure_policy both;
  both.is_outage = both.is_permanent = [](const std::exception& error) {
    return error.what() == std::string("known");
  };
  failure_policy only_permanent;
  only_permanent.is_permanent = both.is_permanent;
  const auto kind = [](const auto& error, const failure_policy& policy) {
    return kind_of(std::make_exception_ptr(error), policy);
  };
  CHECK(kind(std::runtime_error("known"), {}) == error_kind::temporary);
  CHECK(kind(std::runtime_error("known"), both) == error_kind::outage);
  CHECK(kind(std::runtime_error("known"), only_permanent) == error_kind::permanent);
  CHECK(kind(std::runtime_error("other"), both) == error_kind::temporary);
  CHECK(kind(permanent_error("known"), both) == error_kind::permanent);
  CHECK(kind(outage_error("known"), only_permanent) == error_kind::outage);
  CHECK(kind(42, both) == error_kind::temporary);
  for (const std::error_code lost :
       {std::error_code(errc::lease_lost), std::error_code(errc::fenced),
        std::error_code(checkpoint_errc::shutdown)}) {
    CHECK(kind(std::system_error(lost), both) == error_kind::lease_gone);
  }
}
