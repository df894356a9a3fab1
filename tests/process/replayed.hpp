// SPDX-License-Identifier: Apache-2.0
// kclxx replay, as its users start it, over transcripts in a temporary directory.
#pragma once

#include <string>
#include <vector>

#include "support/scripted_daemon.hpp"
#include "support/tool.hpp"

namespace kclxx::test {

using words = std::vector<std::string>;

inline const std::string initialize = R"({"action":"initialize","shardId":"shardId-000000000007",)"
                                      R"("sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})";
inline const std::string lease_lost = R"({"action":"leaseLost"})";
inline const std::string shard_ended = R"({"action":"shardEnded"})";

/// A directory with transcripts, in which the tool runs.
class replayed : public sandbox {
 public:
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    write(name, text);
    return (*this / name).string();
  }
  /// A file with the daemon's lines alone: initialize, so many batches of three records, and the
  /// ending.
  [[nodiscard]] std::string dialogue(int batches, const std::string& ending = lease_lost) const {
    std::string text = initialize + "\n";
    for (int i = 0; i < batches; ++i) text += batch(i) + "\n";
    if (!ending.empty()) text += ending + "\n";
    return file("dialogue.jsonl", text);
  }
  static std::string batch(int number) {
    return records_line({"one", "two", "three"}, static_cast<std::uint64_t>(number) * 10 + 100);
  }

  /// Runs the tool with these arguments and this child.
  [[nodiscard]] forked_result replay(words arguments, const words& child) const {
    arguments.insert(arguments.begin(), "replay");
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), child.begin(), child.end());
    return kclxx(arguments);
  }
  /// Runs the tool with simple_child, which gets the words of `child`.
  [[nodiscard]] forked_result run(const words& arguments, words child) const {
    child.insert(child.begin(), KCLXX_SIMPLE_CHILD);
    return replay(arguments, child);
  }
};

/// A transcript with both sides. Each batch ends with a checkpoint that succeeds. A text in
/// `errors` is the error of an earlier checkpoint in its batch.
inline std::string with_both_sides(const words& errors) {
  std::string text = R"({"kclxx_transcript":1,"shard":"shardId-000000000007",)"
                     R"("started":"2026-11-21T07:00:00.123456Z","command":["./child"]})"
                     "\n";
  long at = 0;
  const auto add = [&](const std::string& source, const std::string& line) {
    text += R"({"at":)" + std::to_string(++at) + R"(,"from":")" + source + R"(","line":)" + line +
            "}\n";
  };
  const auto status = [](const std::string& action) {
    return R"({"action":"status","responseFor":")" + action + R"("})";
  };
  add("daemon", initialize);
  add("child", status("initialize"));
  int number = 0;
  for (const std::string& error : errors) {
    add("daemon", replayed::batch(number++));
    const auto exchange = [&](const std::string& how) {
      add("child", R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})");
      add("daemon",
          R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":)" +
              how + "}");
    };
    if (!error.empty()) exchange('"' + error + '"');
    exchange("null");
    add("child", status("processRecords"));
  }
  text += R"({"at":)" + std::to_string(++at) + R"(,"event":"end_of_input"})" + "\n";
  text += R"({"at":)" + std::to_string(++at) + R"(,"event":"exit","status":0})" + "\n";
  return text;
}

}  // namespace kclxx::test
