// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <random>
#include <utility>

#include "host/conformance/script.hpp"

namespace kclxx::oracle {

using protocol::action_kind;

namespace {

/// What a child may write besides its messages, and what it may do to them.
constexpr std::array noise{"hello",
                           "{}",
                           "[]",
                           "true",
                           " ",
                           "\t",
                           "{\"action\":\"status\"",
                           "{\"action\":\"hello\"}",
                           "{\"action\":\"leaseLost\"}",
                           "{\"action\":\"shutdown\",\"reason\":\"x\"}",
                           "\xff\xfe",
                           "\r",
                           "",
                           "{\"Action\":\"status\",\"responseFor\":\"processRecords\"}"};
constexpr std::array in_front{"", "", "", " ", "\t", "x", "\xef\xbb\xbf", "\r"};
constexpr std::array after{"", "", "", " ", "x", "}", "\r", "{\"action\":\"status\"}", "\xff"};
constexpr std::array extra_fields{R"("extra":1,)",
                                  R"("error":null,)",
                                  R"("error":"x",)",
                                  R"("error":{},)",
                                  R"("checkpoint":"1",)",
                                  R"("action":"x",)",
                                  R"("sequenceNumber":"1",)",
                                  R"("subSequenceNumber":1,)"};
constexpr std::array odd_numbers{R"(null)",
                                 R"("")",
                                 R"(" 101")",
                                 R"("abc")",
                                 R"("TRIM_HORIZON")",
                                 R"("LATEST")",
                                 R"("AT_TIMESTAMP")",
                                 R"("SHARD_END")",
                                 R"(true)",
                                 R"([])",
                                 R"({})",
                                 R"(101.0)",
                                 R"(-5)",
                                 R"("\u0031")",
                                 R"(01)"};
constexpr std::array odd_subs{R"("0")",
                              R"(" 1 ")",
                              R"("+1")",
                              R"("01")",
                              R"("")",
                              R"("null")",
                              R"("x")",
                              R"("1.0")",
                              R"(1.0)",
                              R"(1.9)",
                              R"(-0.5)",
                              R"(1e0)",
                              R"(-1)",
                              R"(true)",
                              R"([1])",
                              R"({})",
                              R"(9223372036854775807)",
                              R"(9223372036854775808)",
                              R"("9223372036854775808")",
                              R"(1e30)",
                              R"(null)",
                              R"(NaN)",
                              R"(+1)"};
constexpr std::array exceptions{"ThrottlingException",      "KinesisClientLibDependencyException",
                                "ShutdownException",        "InvalidStateException",
                                "IllegalArgumentException", "RuntimeException"};
constexpr std::array keys{"key", "k\xc3\xa9y", "\"\\/\b\f\n\r\t\x01\x1f\x7f", "\xf0\x9f\x98\x80",
                          ""};
constexpr std::array base64{"", "YQ==", "YWI=", "YWJj", "+/+/"};

class author {
 public:
  explicit author(std::uint64_t seed) : random_(seed) {}

  script write() {
    script_.name = "random";
    begin();
    for (std::uint64_t batches = below(4); batches > 0; --batches) add_batch();
    if (one_in(3)) add({.kind = action_kind::shutdown_requested});
    if (!one_in(4)) add({.kind = one_in(3) ? action_kind::lease_lost : action_kind::shard_ended});
    for (std::uint64_t writes = below(6); writes > 0; --writes) {
      script_.store.emplace_back(one_in(3) ? pick(exceptions) : "ok");
    }
    return std::move(script_);
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class Range>
  typename Range::value_type pick(const Range& range) {
    return range[below(range.size())];
  }

  void begin() {
    call first{.kind = action_kind::initialize, .shard_id = "shardId-000000000000"};
    if (one_in(3)) {
      first.sequence_number = std::to_string(next_);
      first.sub_sequence_number = below(3);
    } else {
      first.sequence_number = pick(std::array{"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"});
    }
    positions_.push_back(first.sequence_number);
    add(first);
  }

  void add_batch() {
    call batch{.kind = action_kind::process_records};
    if (!one_in(5)) batch.millis_behind_latest = static_cast<std::int64_t>(below(100000));
    for (std::uint64_t records = below(5); records > 0; --records) {
      // User records of one aggregate share the number.
      sub_ = one_in(3) ? sub_ + 1 : 0;
      if (sub_ == 0) next_ += 1 + below(20);
      record_fields fields{.sequence_number = std::to_string(next_), .sub_sequence_number = sub_};
      if (!one_in(6)) fields.data = pick(base64);
      if (!one_in(6)) fields.partition_key = pick(keys);
      if (!one_in(6)) fields.arrival = 1700000000000 + static_cast<std::int64_t>(below(1000));
      positions_.push_back(fields.sequence_number);
      batch.records.push_back(fields);
    }
    add(batch);
  }

  /// A call, and what the child does in it.
  void add(const call& added) {
    script_.calls.push_back(added);
    auto& turns = script_.child.emplace_back(1);
    while (one_in(2)) {
      turns.back().write += line(checkpoint());
      if (one_in(2)) turns.emplace_back();  // waits for the answer, where there is one
    }
    // After the last: what is not answered any more.
    const auto status =
        status_line(one_in(25) ? "processRecords" : protocol::action_name(added.kind));
    if (!one_in(30)) turns.back().write += line(status);
    if (one_in(30)) turns.back().write += line("null");
    if (one_in(15)) turns.back().write += line(checkpoint());
    turns.back().end = one_in(25);
    // A message in the air when the child dies. (After a carriage return it would be complete to
    // the daemon; the model is given lines as newlines end them.)
    std::string& last = turns.back().write;
    if (one_in(20) && last.ends_with('\n') && !last.ends_with("\r\n")) last.pop_back();
  }

  std::string line(const std::string& message) {
    std::string result = one_in(2) ? "\n" : "";
    while (one_in(5)) result += std::string(pick(noise)) + "\n";
    if (one_in(10)) return result + pick(in_front) + message + pick(after) + "\n";
    return result + message + "\n";
  }

  std::string checkpoint() {
    if (one_in(5)) return checkpoint_line(std::nullopt, std::nullopt);
    const std::string number = pick(positions_);
    if (!one_in(4)) {
      std::optional<std::int64_t> sub = static_cast<std::int64_t>(below(3));
      if (one_in(8)) sub = std::nullopt;
      return checkpoint_line(number, sub);
    }
    const bool is_digits = number.front() <= '9';
    std::string result = R"({"action":"checkpoint",)";
    if (one_in(3)) result += pick(extra_fields);
    result += R"("sequenceNumber":)";
    switch (below(4)) {
      case 0:
        result += pick(odd_numbers);
        break;
      case 1:
        result += is_digits ? number : "\"" + number + "\"";  // a bare number
        break;
      case 2:
        result += "\"0" + number + "\"";
        break;
      default:
        result += "\"" + number + "9\"";
    }
    if (one_in(3)) return result + "}";
    return result + R"(,"subSequenceNumber":)" + pick(odd_subs) + "}";
  }

  std::mt19937_64 random_;
  script script_;
  std::uint64_t next_ = 100;
  std::uint64_t sub_ = 0;
  std::vector<std::string> positions_;
};

}  // namespace

script random_script(std::uint64_t seed) { return author(seed).write(); }

}  // namespace kclxx::oracle
