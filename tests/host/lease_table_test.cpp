// SPDX-License-Identifier: Apache-2.0
// The tables are what `aws dynamodb scan` printed of those that real daemons had written; where a
// title says so, with a row removed or an attribute added.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/lease_table/observation.hpp"
#include "host/lease_table/stream_position.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

using namespace kclxx::host::lease_table;
using namespace std::chrono_literals;
using kclxx::test::contains;

namespace {

/// The text of tables.json that has this name.
std::string text_of(const std::string& name) {
  static const std::string tables = kclxx::test::read_file(KCLXX_TABLES);
  const std::string key = "\n\"" + name + "\":\n";
  const std::size_t begin = tables.find(key) + key.size();
  const std::size_t end = std::min(tables.find(",\n\"", begin), tables.rfind("\n}"));
  return tables.substr(begin, end - begin);
}

scan table(const std::string& name) { return parse_scan(text_of(name)); }

/// What is seen in scans of this table at these seconds.
picture seen(const scan& table, std::vector<int> seconds = {0}) {
  observation scans(12s);
  for (const int second : seconds) scans.add(table, std::chrono::seconds(second));
  return scans.look();
}
picture seen(const std::string& name, std::vector<int> seconds = {0}) {
  return seen(table(name), std::move(seconds));
}

const shard_state& shard(const picture& table, int number) {
  for (const shard_state& shard : table.shards) {
    if (shard.lease.shard == "shardId-00000000000" + std::to_string(number)) return shard;
  }
  FAIL("no shard " << number);
  return table.shards.front();
}

bool has_note(const picture& table, bool is_problem, const std::string& text) {
  for (const note& remark : table.notes) {
    if (remark.is_problem == is_problem && contains(remark.text, text)) return true;
  }
  return false;
}

std::string error_of(const std::string& text) {
  try {
    (void)parse_scan(text);
  } catch (const bad_scan& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a shard can have the positions of its own records, and of no other shard's") {
  // The stream and the record of "Getting started" in AWS's documents.
  const std::string first = "49546986683135544286507457935754639466300920667981217794";
  const std::string record = "49546986683135544286507457936321625675700192471156785154";
  const std::string of_older = "49543463076548007577105092703039560359975228518395019266";
  const std::string of_newer = "49590338271490256608559692538361571095921575989136588898";
  const stream_shard open{"shardId-000000000000", first, ""};
  CHECK(can_be_in(open, first));
  CHECK(can_be_in(open, record));
  CHECK_FALSE(can_be_in(open, of_older));
  CHECK_FALSE(can_be_in(open, of_newer));
  const stream_shard closed{"shardId-000000000000", first, record};
  CHECK(can_be_in(closed, record));
  CHECK_FALSE(can_be_in(closed, record.substr(0, 55) + "9"));
  // Numbers of another kind have their range alone.
  CHECK(can_be_in({"s", "100", ""}, "100"));
  CHECK_FALSE(can_be_in({"s", "100", ""}, "99"));
  CHECK_FALSE(can_be_in({"s", "100", "120"}, "121"));
  // What is no number, or whose range is not known, is not judged.
  for (const std::string& text : {std::string("TRIM_HORIZON"), std::string(), std::string("099"),
                                  std::string(400'000, '1')}) {
    CHECK(can_be_in(open, text));
  }
  CHECK(can_be_in({"s", "", ""}, "1"));
}

namespace {

/// What is said of a table of four shards whose stream has these shards.
picture seen_beside(const std::vector<stream_shard>& shards) {
  scan rows = table("moving_1");
  rows.stream = "clicks";
  rows.shards = shards;
  return seen(rows);
}

/// The shards whose records the table has, each of which begins with the number at its checkpoint.
std::vector<stream_shard> shards_of_table() {
  std::vector<stream_shard> shards;
  for (const lease& row : table("moving_1").leases) {
    shards.push_back({row.shard, row.sequence_number, ""});
  }
  return shards;
}

}  // namespace

TEST_CASE("rows of another stream are told in one line: two streams under one applicationName") {
  const std::string begin = "rows that the stream clicks cannot have: ";
  CHECK_FALSE(has_note(seen_beside(shards_of_table()), true, ""));
  CHECK_FALSE(has_note(seen_beside({}), true, ""));  // not known

  std::vector<stream_shard> other_stream = shards_of_table();
  for (stream_shard& shard : other_stream) {
    shard.first_number = table("leader_killed_1").leases[1].sequence_number;
  }
  const picture mixed = seen_beside(other_stream);
  CHECK(mixed.is_stuck());
  CHECK(has_note(mixed, true, begin + "shardId-000000000000 at ~"));
  CHECK(has_note(mixed, true, " and 1 more: another stream is read under this applicationName"));
  CHECK(std::count_if(mixed.notes.begin(), mixed.notes.end(),
                      [](const note& remark) { return remark.is_problem; }) == 1);

  std::vector<stream_shard> fewer = shards_of_table();
  fewer.pop_back();
  CHECK(has_note(seen_beside(fewer), true,
                 begin + "shardId-000000000003, which it does not have: another stream"));

  // A shard that has ended leaves the stream before its row leaves the table.
  scan ended = table("children");
  for (const lease& row : ended.leases) {
    if (!row.has_ended()) ended.shards.push_back({row.shard, "", ""});
  }
  CHECK_FALSE(has_note(seen(ended), true, ""));
}

TEST_CASE("1: an owner that has not renewed for the interval is stuck, and not before") {
  const picture early = seen("owner_killed", {0, 11});
  CHECK(shard(early, 0).state == lease_state::held);
  CHECK(shard(early, 0).is_moving == std::nullopt);
  CHECK_FALSE(early.is_stuck());
  const picture late = seen("owner_killed", {0, 12});
  CHECK(late.is_stuck());
  CHECK(shard(late, 0).state == lease_state::stuck);
  CHECK(shard(late, 0).is_moving == false);
  CHECK(contains(shard(late, 0).cause, "host-1 has not renewed it for 12 s"));
}

TEST_CASE("2: a lease without an owner (removed) is free, and stuck when nobody takes it") {
  scan free = table("owner_killed");
  free.leases[1].owner.clear();
  CHECK(shard(seen(free), 1).state == lease_state::free);
  CHECK_FALSE(seen(free).is_stuck());
  const picture late = seen(free, {0, 12});
  CHECK(shard(late, 1).state == lease_state::stuck);
  CHECK(shard(late, 1).cause == "no worker has it: if none runs, start one");
}

TEST_CASE("a free lease names the leader that has yet to assign it") {
  scan free = table("leader_killed_1");
  free.leases[1].owner.clear();
  CHECK(shard(seen(free), 1).cause ==
        "no worker has it: the leader host-1 has yet to assign it; if none runs, start one");
}

TEST_CASE("a shard whose row is gone is stuck, and named by its hash keys") {
  const auto of = [](const std::vector<std::pair<std::string, std::string>>& ranges,
                     const std::string& attributes = "") {
    std::string items;
    int number = 0;
    for (const auto& [first, last] : ranges) {
      items += (items.empty() ? "" : ",") + std::string(R"({"leaseKey":{"S":"s-)") +
               std::to_string(++number) + R"("},"leaseCounter":{"N":"1"},"checkpoint":{"S":"1"},)" +
               R"("startingHashKey":{"S":")" + first + R"("},"endingHashKey":{"S":")" + last +
               "\"}" + attributes + "}";
    }
    return parse_scan("{\"Items\":[" + items + "]}");
  };
  const auto problems = [](const scan& table, const std::vector<int>& seconds = {0}) {
    std::vector<std::string> found;
    for (const note& remark : seen(table, seconds).notes) {
      if (remark.is_problem) found.push_back(remark.text.substr(0, remark.text.find(':')));
    }
    return found;
  };
  using texts = std::vector<std::string>;
  const std::string last = "340282366920938463463374607431768211455";
  CHECK(problems(of({{"0", last}})).empty());
  CHECK(problems(of({{"101", last}, {"0", "100"}, {"0", "99"}})).empty());
  CHECK(problems(of({{"000", "00100"}, {"0101", last}})).empty());
  CHECK(problems(of({{"0", "100"}, {"200", last}})) ==
        texts{"no lease covers hash keys 101 to 199"});
  CHECK(problems(of({{"1000", "1999"}})) ==
        texts{"no lease covers hash keys 0 to 999", "no lease covers hash keys 2000 to " + last});
  CHECK(problems(of({{"0", last}, {"0", "5"}, {"0", "1"}}), {0, 12}).empty());
  CHECK(problems(of({{"0", "100"}, {"200", last}}), {0, 12}).size() == 1);
  // Two streams in a table do not cover each other's.
  CHECK(problems(of({{"0", "100"}}, R"(,"streamName":{"S":"a"})")) ==
        texts{"no lease covers hash keys 101 to " + last + " of stream a"});
  // DynamoDB Streams have no hash keys, old tables do not tell them.
  CHECK(problems(of({{"0", "1"}, {"0", "1"}})).empty());
  CHECK(problems(table("owner_killed")).empty());
  CHECK(error_of(R"({"Items":[{"leaseKey":{"S":"s"},"leaseCounter":{"N":"1"},)"
                 R"("startingHashKey":{"S":"-1"}}]})") ==
        "Items[0]: startingHashKey is not a whole number");
  // A scan that came while leases were made is not believed.
  observation scans(12s);
  scans.add(of({{"0", last}}), 0s);
  scans.add(of({{"0", "100"}}), 12s);
  CHECK_FALSE(has_note(scans.look(), true, "no lease covers"));
}

TEST_CASE("shards that kclxx local knows to have no lease are named") {
  CHECK(has_note(seen(parse_scan(R"({"Items":[],"kclxxUnleased":["shardId-1"]})")), true,
                 "the shard shardId-1 has no lease"));
}

TEST_CASE("3: a hand-over is one for 35 s, and then a checkpointOwner that stayed") {
  const picture early = seen("hand_over", {0, 34});
  std::optional<shard_state> handed;
  for (const shard_state& shard : early.shards) {
    if (!shard.lease.checkpoint_owner.empty()) handed = shard;
  }
  REQUIRE(handed);
  CHECK(handed->state == lease_state::handing_over);
  CHECK(early.is_handing_over());
  const picture late = seen("hand_over", {0, 12, 35});
  for (const shard_state& shard : late.shards) {
    if (shard.lease.shard != handed->lease.shard) continue;
    CHECK(shard.state == lease_state::stuck);
    CHECK(shard.cause ==
          "host-1 has to hand it over to host-2, and has not for 35 s: restart host-1");
  }
}

TEST_CASE("4: a shard at its end is fine with children, and stuck without (their rows removed)") {
  CHECK(shard(seen("children"), 0).state == lease_state::ended);
  CHECK(shard(seen("children"), 0).is_moving == std::nullopt);
  scan rows = table("children");
  std::erase_if(rows.leases, [](const lease& row) { return !row.parents.empty(); });
  const picture without = seen(rows);
  CHECK(without.is_stuck());
  CHECK(shard(without, 0).state == lease_state::stuck);
  CHECK(contains(shard(without, 0).cause, "none of its children has a lease"));
}

TEST_CASE("5: a child waits until its parent has ended (which was made undone)") {
  scan rows = table("children");
  rows.leases[0].sequence_number = rows.leases[1].sequence_number;
  const picture now = seen(rows);
  CHECK(shard(now, 4).state == lease_state::waits);
  CHECK(shard(now, 4).cause == "until shardId-000000000000 has ended");
  CHECK_FALSE(now.is_stuck());
}

TEST_CASE("6: a leader that has ended is named, though its lock is still there") {
  observation scans(12s);
  scans.add(table("leader_killed_1"), 0s);
  CHECK_FALSE(has_note(scans.look(), true, ""));
  scans.add(table("leader_killed_2"), 12s);
  const picture late = scans.look();
  CHECK(late.is_leader_moving == false);
  CHECK(has_note(late, true, "the leader host-1 has ended: no lease is assigned"));
  CHECK(contains(shard(late, 1).cause, "there is no leader to give it to another"));
  CHECK(shard(late, 3).state == lease_state::ok);
}

TEST_CASE("7: a table of KCL 3 without a leader's row (removed) has no leader") {
  scan rows = table("leader_killed_2");
  rows.leader.reset();
  CHECK(has_note(seen(rows), true, "no worker is the leader"));
  CHECK(contains(shard(seen(rows, {0, 12}), 1).cause,
                 "host-1 has not renewed it for 12 s: it has ended, or hangs, and there is no "
                 "leader to give it to another"));
}

TEST_CASE("8: rows that KCL 2 cannot read are named, and who can take a lease then") {
  const picture table = seen("mixed_fleet", {0, 12});
  CHECK(table.client_version == "CLIENT_VERSION_UPGRADE_FROM_2X");
  CHECK(table.other_rows == std::vector<std::string>{"Migration3.0", "host-2"});
  CHECK(contains(shard(table, 1).cause,
                 "start a worker of KCL 3 if none runs; KCL 2 cannot take it"));
}

TEST_CASE("9: an empty table tells that no worker has begun") {
  for (const scan& rows : {parse_scan(R"({"Items": []})"), table("only_version")}) {
    CHECK(has_note(seen(rows), true, "the table has no lease: no worker has begun"));
  }
}

TEST_CASE("10: counters that move are fine, however old the checkpoint is") {
  observation scans(12s);
  scans.add(table("moving_1"), 0s);
  scans.add(table("moving_2"), 4s);
  const picture now = scans.look();
  CHECK_FALSE(now.is_stuck());
  for (const shard_state& shard : now.shards) {
    CHECK(shard.state == lease_state::ok);
    CHECK(shard.is_moving == true);
    REQUIRE(shard.arrival);
  }
  const std::string text = to_table(now, *now.shards.front().arrival + 345'600);
  CHECK(contains(text, "  4 days  ok\n"));
  CHECK_FALSE(contains(text, "one scan"));
}

TEST_CASE("one scan does not tell what moves, and says so") {
  CHECK(has_note(seen("moving_1"), false, "is not known from one scan"));
  CHECK(shard(seen("moving_1"), 0).is_moving == std::nullopt);
}

TEST_CASE("leader and version of KCL 3.0 to 3.4 come from the table beside") {
  scan rows = table("kcl_3_4");
  CHECK_FALSE(rows.leader);
  rows.add_coordinator_state(text_of("kcl_3_4-CoordinatorState"));
  REQUIRE(rows.leader);
  CHECK(rows.leader->owner == "host-1");
  CHECK(rows.client_version == "CLIENT_VERSION_3X");
  for (const std::string beside : {"CoordinatorState", "WorkerMetricStats"}) {
    CHECK(contains(error_of(text_of("kcl_3_4-" + beside)),
                   "Items[0]: no leaseKey: this is the table of the application with -" + beside));
  }
}

TEST_CASE("what is no scan, or not all of one, is told with its place") {
  const std::string lease = R"({"Items": [{"leaseKey": {"S": "s"}, "leaseCounter": {"N": "1"}, )";
  CHECK(error_of(" \n") == "it is empty");
  CHECK(error_of("{\"Items\":\n [") == "it is no JSON: wrong or cut off at line 2, column 3");
  CHECK(contains(error_of("[]"), "no list Items"));
  CHECK(contains(error_of(R"({"Items": [], "NextToken": "x"})"), "not the whole table"));
  CHECK(contains(error_of(R"({"Items": [], "LastEvaluatedKey": {}})"), "LastEvaluatedKey"));
  CHECK(error_of(R"({"Items": [], "NextToken": null})").empty());
  CHECK(error_of(R"({"Items": [{"id": {"S": "1"}}]})") ==
        "Items[0]: no leaseKey, so it is no lease table");
  CHECK(error_of(R"({"Items": [7]})") == "Items[0]: it is not an object");
  CHECK(error_of(R"({"Items": [{"leaseKey": {"S": "s"}, "leaseCounter": {"S": "1"}}]})") ==
        "Items[0]: leaseCounter has no value of the type N");
  CHECK(error_of(R"({"Items": [{"leaseKey": {"S": "s"}, "leaseCounter": {"N": "x"}}]})") ==
        "Items[0]: leaseCounter is not a whole number");
  CHECK(error_of(lease + R"("parentShardId": {"SS": [1]}}]})") ==
        "Items[0]: parentShardId is no set of texts");
  CHECK(error_of(R"({"Items": [], "stream": 1})") == "\"stream\" is no text");
  for (const char* number : {"\"many\"", "-1", "1e300", "9223372036854775808"}) {
    CHECK(contains(error_of(std::string(R"({"Items": [], "kclxxBacklogs": {"s": {"records": )") +
                            number + "}}}"),
                   "\"records\" is no whole number from 0 to "));
  }
  CHECK(error_of("{\"Items\": " + std::string(200'000, '[')) ==
        "it is nested deeper than 100 levels");
}

TEST_CASE("the table aligns its columns, and shows no control characters") {
  scan rows;
  rows.leases.push_back({"shardId-0", "a\x1b[31m", "", 7, "TRIM_HORIZON", "0", {}});
  rows.leases.push_back({"shardId-1", "", "", 12345, std::string(56, '4'), "2", {}});
  rows.backlogs["shardId-0"] = {1200, 64'000};
  const picture table = seen(rows);
  CHECK(
      to_table(table, 0) ==
      "shard      owner      counter  moves  checkpoint         age   lag  oldest  state\n"
      "shardId-0  a\\x1b[31m        7  -      TRIM_HORIZON/0       -  1200    64 s  held\n"
      "shardId-1  -            12345  -      ~44444444444444/2    -     -       -  free: no worker "
      "has it: if none runs, start one\n"
      "worker     leases  oldest checkpoint   lag\n"
      "a\\x1b[31m       1                  -  1200\n"
      "note: whether counters move is not known from one scan\n");
  CHECK(to_tsv(table, 0) ==
        "shard\tsequence_number\tsub_sequence_number\towner\tcounter\tlag\toldest_milliseconds\t"
        "moves\tage_seconds\tstate\tcause\n"
        "shardId-0\tTRIM_HORIZON\t0\ta\\x1b[31m\t7\t1200\t64000\t-\t-\theld\t-\n"
        "shardId-1\t" +
            std::string(56, '4') +
            "\t2\t-\t12345\t-\t-\t-\t-\tfree\tno worker has it: if none runs, start one\n");
}

TEST_CASE("no form shows anything that a terminal could obey, or that makes a row or a field") {
  const std::string bad = kclxx::test::obeyed_text();
  scan rows;
  rows.leases.push_back({bad, bad, bad, 7, bad, bad, {bad}});
  const picture seen_table = seen(rows);
  const std::string tsv = to_tsv(seen_table, 0);
  CHECK(std::count(tsv.begin(), tsv.end(), '\n') == 2);  // with the names of the fields
  CHECK(std::count(tsv.begin(), tsv.end(), '\t') == 20);
  std::string fields = tsv.substr(tsv.find('\n') + 1);
  std::erase(fields, '\t');
  for (const std::string& text : {fields, to_json(seen_table, bad, 0, true)}) {
    CHECK_FALSE(kclxx::test::has_obeyed(text));
    CHECK_FALSE(kclxx::test::has_raw_byte(text));
  }
  const std::string table = to_table(seen_table, 0);
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = table.find('\n', at);
    CHECK_FALSE(kclxx::test::has_obeyed(table.substr(at, end - at)));
    at = end + 1;
  }
  CHECK(std::count(table.begin(), table.end(), '\n') < 8);
}

TEST_CASE("each worker has a line: its leases, the oldest checkpoint, and the lag that is known") {
  scan rows = table("hand_over");
  for (lease& row : rows.leases) row.owner = row.shard.ends_with("0") ? "host-2" : "host-1";
  rows.leases[1].sequence_number = "SHARD_END";
  rows.leases[3].owner.clear();
  rows.backlogs["shardId-000000000000"] = {7, 1000};
  rows.backlogs["shardId-000000000001"] = {0, std::nullopt};
  const std::int64_t arrival = *arrival_of(rows.leases[2].sequence_number);
  CHECK(contains(to_table(seen(rows), arrival + 5),
                 "worker  leases  oldest checkpoint  lag\n"
                 "host-1       1                5 s    -\n"
                 "host-2       1                5 s    7\n"));
  CHECK(contains(to_json(seen(rows), "my-app", arrival + 5, true),
                 R"("workers":[{"worker":null,"leases":1,"oldest_checkpoint_age_seconds":5},)"
                 R"({"worker":"host-1","leases":1,"oldest_checkpoint_age_seconds":5},)"));
}

TEST_CASE("JSON has what the table has") {
  const std::string text = to_json(seen("owner_killed", {0, 12}), "my-app", 0, true);
  CHECK(text.find('\n') == text.size() - 1);
  for (const char* part :
       {R"({"table":"my-app","scans":2,"observed_seconds":12.0,"stuck":true,"leader":null,)",
        R"("shard":"shardId-000000000000","owner":"host-1","checkpoint_owner":null,)",
        R"("moves":false,"checkpoint":{"sequence_number":")",
        R"("state":"stuck","cause":"host-1 has not renewed it)"}) {
    CAPTURE(text);
    CHECK(contains(text, part));
  }
}

namespace {

/// A shard with records of these arrivals, whose sequence numbers are 100, 101, ... Each second
/// page is empty, as Kinesis' may be.
class played_shard {
 public:
  explicit played_shard(std::vector<instant> arrivals, bool has_ended = false)
      : arrivals_(std::move(arrivals)), has_ended_(has_ended) {}

  shard_reader reader() {
    return {[this](std::optional<instant> time) {
              std::size_t index = 0;
              while (time && index < arrivals_.size() && arrivals_[index] < *time) ++index;
              return std::to_string(index) + " empty";
            },
            [this](const std::string& iterator, int max_records) {
              ++reads;
              std::size_t index = std::stoul(iterator);
              record_page page;
              for (; !contains(iterator, "empty") && index < arrivals_.size() &&
                     page.records.size() < static_cast<std::size_t>(max_records);
                   ++index) {
                page.records.push_back({std::to_string(100 + index), arrivals_[index]});
              }
              page.is_at_tip = index == arrivals_.size();
              page.next_iterator =
                  page.is_at_tip && has_ended_
                      ? ""
                      : std::to_string(index) + (contains(iterator, "empty") ? "" : " empty");
              return page;
            }};
  }

  int reads = 0;

 private:
  std::vector<instant> arrivals_;
  bool has_ended_;
};

}  // namespace

TEST_CASE("from the position of a time on all later records come, and no earlier one") {
  const bool has_ended = GENERATE(false, true);
  std::vector<instant> arrivals;
  // Several of one millisecond, a burst, a day without any, and then one.
  for (int i = 0; i < 2500; ++i) arrivals.emplace_back(1'000'000'000 + i / 3);
  arrivals.emplace_back(1'000'000'000 + 86'400'000);
  for (const std::int64_t offset :
       {-1, 0, 1, 400, 833, 834, 5'000, 86'399'999, 86'400'000, 86'400'001, 900'000'000}) {
    const instant time(1'000'000'000 + offset);
    CAPTURE(offset);
    played_shard shard(arrivals, has_ended);
    const stream_position found = find_position(shard.reader(), time);
    const auto first = std::lower_bound(arrivals.begin(), arrivals.end(), time);
    CHECK(found.checkpoint == (first == arrivals.begin()
                                   ? "TRIM_HORIZON"
                                   : std::to_string(99 + (first - arrivals.begin()))));
    CHECK(found.first_arrival == (first == arrivals.end() ? std::nullopt : std::optional(*first)));
    CHECK(shard.reads < 60);
  }
  played_shard empty({}, has_ended);
  CHECK(find_position(empty.reader(), instant(5)).checkpoint == "TRIM_HORIZON");
}

TEST_CASE("a time has a zone, and what aws prints is a time in each of its versions") {
  CHECK(parse_instant("1970-01-02T00:00:00Z") == 24h);
  CHECK(parse_instant("2018-12-17T22:10:50.987000+00:00") == instant(1545084650987));
  CHECK(parse_instant("2018-12-17T23:40:50.9+01:30") == instant(1545084650900));
  CHECK(parse_instant("2018-12-17 22:10-0100") == instant(1545088200000));
  CHECK(kclxx::detail::to_iso_8601(std::chrono::sys_time<instant>(instant(1545084650987))) ==
        "2018-12-17T22:10:50.987Z");
  for (const char* text :
       {"", "2018-12-17T22:10:50", "2018-12-17", "2018-02-30T00:00:00Z", "2018-12-17T24:00:00Z",
        "2018-12-17T22:10:50Z ", "2018-12-17T22:10:50.Z", "-018-12-17T22:10:50Z", "1545084650"}) {
    CAPTURE(text);
    CHECK(parse_instant(text) == std::nullopt);
  }
  const auto arrival = [](const std::string& value) {
    return parse_records(R"({"Records": [{"SequenceNumber": "1", "ApproximateArrivalTimestamp": )" +
                         value + R"(}], "NextShardIterator": "x", "MillisBehindLatest": 5})")
        .records.front()
        .arrival;
  };
  CHECK(arrival("1545084650.987") == instant(1545084650987));
  CHECK(arrival(R"("2018-12-17T22:10:50.987000+00:00")") == instant(1545084650987));
  for (const char* text : {"\"yesterday\"", "1e10", "-1", "\"2999-01-01T00:00:00Z\""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(arrival(text), bad_stream_answer);
  }
  for (const char* text : {"", "[]", "{}", R"({"Records": [1]})", R"({"Records": [{}]})"}) {
    CHECK_THROWS_AS(parse_records(text), bad_stream_answer);
    CHECK_THROWS_AS(parse_iterator(text), bad_stream_answer);
    CHECK_THROWS_AS(parse_shards(text), bad_stream_answer);
  }
}
