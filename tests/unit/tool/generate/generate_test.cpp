// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/decoded_line.hpp"
#include "support/forked.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"
#include "tool/commands.hpp"
#include "tool/generate/generated_shards.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

using namespace kclxx::tool;
using kclxx::test::decoded_line;
using kclxx::test::in_forked_copy;
namespace fs = std::filesystem;
namespace protocol = kclxx::protocol;

namespace {

using strings = std::vector<std::string>;

struct outcome {
  int status;
  std::string error;
};

outcome run_generate(strings arguments) {
  arguments.insert(arguments.begin(), {"kclxx", "generate"});
  std::vector<const char*> raw;
  for (const std::string& argument : arguments) raw.push_back(argument.c_str());
  CLI::App app("", "kclxx");
  invocation run;
  add_generate_command(app, run);
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const int status = run_command_line(app, run, static_cast<int>(raw.size()), raw.data());
  std::cerr.rdbuf(before);
  return {status, said.str()};
}

/// Runs `kclxx generate` with a directory of its own, which goes with it.
class generated {
 public:
  explicit generated(strings arguments) { run(std::move(arguments)); }

  void run(strings arguments) {
    arguments.insert(arguments.begin(), {"--output", directory_.string()});
    const outcome result = run_generate(std::move(arguments));
    status = result.status;
    error = result.error;
  }

  [[nodiscard]] fs::path operator/(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& file : fs::directory_iterator(directory_)) {
      all[file.path().filename().string()] = kclxx::test::read_file(file.path());
    }
    return all;
  }

  /// The daemon's lines of one shard.
  [[nodiscard]] std::vector<std::string> lines(const std::string& file) const {
    input_file source((directory_ / file).string());
    kclxx::transcript::reader from(source, file);
    kclxx::transcript::entry entry;
    std::vector<std::string> all;
    while (from.next(entry)) {
      const bool is_line = entry.kind == kclxx::transcript::entry_kind::daemon_line;
      all.push_back(is_line ? std::string(entry.line) : "end_of_input");
    }
    return all;
  }

  int status = 0;
  std::string error;

 private:
  kclxx::test::temporary_folder folder_;
  const fs::path& directory_ = folder_.path();
};

struct seen_record {
  kclxx::sequence_position position;
  std::string key;
  std::size_t size;
  kclxx::record::time_point arrival;
};

std::vector<seen_record> records_of(const strings& lines) {
  std::vector<seen_record> all;
  for (const std::string& line : lines) {
    if (line == "end_of_input") continue;
    const decoded_line decoded(line);
    REQUIRE_FALSE(decoded.is_error());
    for (const kclxx::record& entry : decoded.records()) {
      all.push_back({entry.position(), std::string(*entry.partition_key()), entry.data().size(),
                     *entry.approximate_arrival_timestamp()});
    }
  }
  return all;
}

strings tail(const strings& lines, std::size_t count) {
  return {lines.end() - static_cast<std::ptrdiff_t>(std::min(count, lines.size())), lines.end()};
}

}  // namespace

TEST_CASE("the same seed gives the same bytes, another one others", "[tool][generate]") {
  const strings options{"--shards", "2", "--records", "500", "--reshard", "2", "--size", "10..90"};
  const generated dialogue(options);
  const generated same(options);
  strings with_seed = options;
  with_seed.insert(with_seed.end(), {"--seed", "2"});
  const generated other(with_seed);
  CHECK(dialogue.status == 0);
  CHECK(dialogue.files() == same.files());
  CHECK(dialogue.files() != other.files());
}

TEST_CASE("all records come, in batches, rising, on the way to the tip", "[tool][generate]") {
  const generated made(
      {"--records", "2500", "--batch", "400", "--size", "100..300", "--keys", "20"});
  const strings lines = made.lines("shardId-000000000000.jsonl");
  REQUIRE(lines.size() == 1 + 7 + 3);
  CHECK(
      lines.front() ==
      R"({"action":"initialize","shardId":"shardId-000000000000","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})");
  const auto records = records_of(lines);
  REQUIRE(records.size() == 2500);
  std::set<std::string> keys;
  std::size_t smallest = records.front().size;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    keys.insert(records[i].key);
    smallest = std::min(smallest, records[i].size);
    largest = std::max(largest, records[i].size);
    if (i == 0) continue;
    CHECK(records[i - 1].position < records[i].position);
    CHECK(records[i - 1].arrival <= records[i].arrival);
  }
  CHECK(records.front().position.sequence_number().size() == 56);
  CHECK(keys.size() == 20);
  CHECK(keys.contains("cl\xC3\xA9-7"));
  CHECK(smallest >= 100);
  CHECK(smallest < 110);
  CHECK(largest <= 300);
  CHECK(largest > 290);
  std::vector<std::int64_t> behind;
  for (std::size_t i = 1; i <= 7; ++i) {
    const decoded_line decoded(lines[i]);
    behind.push_back(decoded.as<protocol::process_records>().millis_behind_latest->count());
  }
  CHECK(behind == std::vector<std::int64_t>{6000, 5000, 4000, 3000, 2000, 1000, 0});
}

TEST_CASE("a shard's records have the payloads of a file, in turn, byte for byte",
          "[tool][generate]") {
  const generated files({"--records", "1"});  // for its directory alone
  const fs::path file = files / "payloads";
  std::ofstream(file, std::ios::binary) << "{\"n\":1}\n\n\xFF\x80 \r\n\xC3\xA4";
  const generated made(
      {"--records", "5", "--batch", "2", "--shards", "1", "--data", file.string()});
  REQUIRE(made.error.empty());
  std::vector<std::string> data;
  for (const std::string& line : made.lines("shardId-000000000000.jsonl")) {
    if (line.find("processRecords") == std::string::npos) continue;
    const decoded_line decoded(line);
    for (const kclxx::record& one : decoded.records()) data.emplace_back(one.data());
  }
  CHECK(data == strings{"{\"n\":1}", "\xFF\x80 \r", "\xC3\xA4", "{\"n\":1}", "\xFF\x80 \r"});
}

TEST_CASE("a file without a payload, or with one that no record can have, is refused",
          "[tool][generate]") {
  const generated files({"--records", "1"});
  const auto refusal = [&](const std::string& text) {
    std::ofstream(files / "payloads", std::ios::binary) << text;
    const outcome result = run_generate(
        {"--output", (files / "made").string(), "--data", (files / "payloads").string()});
    CHECK(result.status == 5);
    CHECK_FALSE(fs::exists(files / "made"));
    return result.error;
  };
  CHECK(refusal("\n\n").ends_with("payloads has no line with a payload\n"));
  CHECK(refusal("x\n" + std::string(10'485'761, 'x'))
            .ends_with("payloads:2 is too long: a record has at most 10485760 bytes\n"));
  CHECK(run_generate({"--output", "x", "--data", "x", "--size", "1"}).status == 2);
}

TEST_CASE("user records of an aggregate share their sequence number, and their batch",
          "[tool][generate]") {
  const generated made({"--records", "20", "--batch", "5", "--aggregate", "3", "--size", "1"});
  const strings lines = made.lines("shardId-000000000000.jsonl");
  CHECK(records_of({lines[1]}).size() == 6);  // five would tear one apart
  const auto records = records_of(lines);
  REQUIRE(records.size() == 20);
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].position.sub_sequence_number() == i % 3);
    const bool is_same_as_before =
        i > 0 && records[i].position.sequence_number() == records[i - 1].position.sequence_number();
    CHECK(is_same_as_before == (i % 3 != 0));
  }
}

TEST_CASE("the ending is what was asked for", "[tool][generate]") {
  const std::string lost = R"({"action":"leaseLost"})";
  const auto ends_with = [](const std::string& how, const strings& ending) {
    const generated made({"--records", "1", "--end", how});
    const strings lines = made.lines("shardId-000000000000.jsonl");
    CHECK(lines.size() == 2 + ending.size());
    CHECK(tail(lines, ending.size()) == ending);
  };
  ends_with("shutdown", {R"({"action":"shutdownRequested"})", lost, "end_of_input"});
  ends_with("lease-lost", {lost, "end_of_input"});
  ends_with("shard-end", {R"({"action":"shardEnded"})", "end_of_input"});
  ends_with("none", {"end_of_input"});
}

TEST_CASE("resharding closes parents and opens their child shards with their keys",
          "[tool][generate]") {
  kclxx::tool::random_numbers random(GENERATE(as<std::uint64_t>(), 1, 2, 3, 4, 5));
  const stream_shape shape{3, 10, 5000, 100'003};
  const auto shards = generate_shards(shape, random);
  std::uint64_t records = 0;
  std::set<std::size_t> parents;
  std::size_t open_keys = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const generated_shard& shard = shards[i];
    CHECK(shard.number == i);
    records += shard.records;
    if (!shard.is_closed) open_keys += shard.end_key - shard.first_key;
    for (const std::size_t parent : shard.parents) {
      parents.insert(parent);
      CHECK(shards.at(parent).is_closed);
      CHECK(shards[parent].born_in < shard.born_in);
    }
    if (shard.parents.size() == 2) {
      CHECK(shards[shard.parents[0]].end_key == shards[shard.parents[1]].first_key);
      CHECK(shard.first_key == shards[shard.parents[0]].first_key);
      CHECK(shard.end_key == shards[shard.parents[1]].end_key);
    }
  }
  CHECK(records == shape.records);
  CHECK(open_keys == shape.keys);
  const auto closed = std::count_if(shards.begin(), shards.end(),
                                    [](const generated_shard& shard) { return shard.is_closed; });
  CHECK(parents.size() == static_cast<std::size_t>(closed));
}

TEST_CASE("a parent's file ends with shardEnded and comes before its child shards'",
          "[tool][generate]") {
  const generated made({"--records", "90", "--reshard", "1", "--keys", "2"});
  REQUIRE(made.files().size() == 3);
  const strings parent = made.lines("shardId-000000000000.jsonl");
  CHECK(tail(parent, 2) == strings{R"({"action":"shardEnded"})", "end_of_input"});
  const auto before = records_of(parent);
  REQUIRE(before.size() == 45);
  for (const std::string child : {"shardId-000000000001.jsonl", "shardId-000000000002.jsonl"}) {
    const auto after = records_of(made.lines(child));
    REQUIRE_FALSE(after.empty());
    CHECK(before.back().position < after.front().position);
    CHECK(before.back().arrival < after.front().arrival);
    CHECK(made.lines(child).front().find("TRIM_HORIZON") != std::string::npos);
  }
}

TEST_CASE("what cannot be made is refused in one line", "[tool][generate]") {
  const auto refused = [](const strings& arguments, const std::string& beginning) {
    const generated made(arguments);
    CAPTURE(made.error);
    CHECK(made.status == 2);
    CHECK(made.error.starts_with("kclxx generate: " + beginning));
    CHECK(made.error.find('\n') == made.error.size() - 1);
    CHECK(made.files().empty());
  };
  refused({"--size", "5..2"}, "--size: the range 5..2 is empty");
  refused({"--size", "x"}, "--size: \"x\" is neither a number of bytes nor a range");
  refused({"--size", "99999999"}, "--size: \"99999999\" is neither");
  refused({"--shards", "0"}, "--shards");
  refused({"--records", "010"}, "--records: '010' is not a whole number between 0 and ");
  refused({"--records", "0x10"}, "--records: '0x10' is not a whole number");
  refused({"--end", "never"}, "--end");
  refused({"--shards", "4", "--keys", "3"}, "--keys: 3 keys are too few: every shard needs one");
  generated again({"--records", "1"});
  const fs::path first = again / "shardId-000000000000.jsonl";
  CHECK(run_generate({"--output", first.string() + "/made"}).error ==
        "kclxx generate: " + first.string() + "/made cannot be made: Not a directory\n");
  fs::rename(first, again / "shardId-000000000001.jsonl");
  again.run({"--records", "1", "--shards", "3"});
  CHECK(again.status == 5);
  CHECK(again.error.find("1.jsonl cannot be made: File exists") != std::string::npos);
  CHECK(again.files().size() == 1);  // none was made before it was found
}

TEST_CASE("a batch whose line could be longer than 1 GiB is refused before anything is written",
          "[tool][generate]") {
  const fs::path directory =
      fs::temp_directory_path() / ("kclxx_lines_" + std::to_string(::getpid()));
  const auto refused = [&](const strings& shape) {
    strings arguments{"--output", directory.string()};
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    const outcome result = run_generate(arguments);
    CHECK_FALSE(fs::exists(directory));
    CHECK(result.error.find("more than 1 GiB") != std::string::npos);
    return result.status;
  };
  CHECK(refused({"--batch", "105", "--size", "10485760"}) == 2);
  CHECK(refused({"--batch", "1", "--aggregate", "105", "--size", "1..10485760"}) == 2);
  // As many records as are asked for are one line at most.
  const outcome small = run_generate(
      {"--output", directory.string(), "--batch", "105", "--size", "10485760", "--records", "1"});
  CHECK(small.status == 0);
  fs::remove_all(directory);
}

TEST_CASE("what fails half-way leaves no file and no directory of its own", "[tool][generate]") {
  const generated place({"--records", "1"});
  // SIGXFSZ ignored: a write beyond the limit is an error then, as on a full disk.
  const auto result = in_forked_copy([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{40'000, 40'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto made = run_generate({"--output", (place / "made").string(), "--shards", "2",
                                    "--records", "100", "--reshard", "1"});
    std::fputs(made.error.c_str(), stderr);
    return made.status;
  });
  CHECK(result.status == 5);
  CHECK(result.err.find("cannot be written: File too large") != std::string::npos);
  CHECK_FALSE(fs::exists(place / "made"));
}
