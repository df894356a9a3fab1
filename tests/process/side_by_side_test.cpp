// SPDX-License-Identifier: Apache-2.0
// The driver of scripts/bench: a client that is measured must have done the work.
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure.hpp"
#include "measured_child.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

using bench::job;
using kclxx::test::contains;
using nlohmann::json;

namespace {

/// A client in the shell: `checkpoint` is what it does with a line of records, `at_end` what it
/// does last.
std::vector<std::string> client(const std::string& checkpoint, const std::string& at_end = "") {
  return {"/bin/sh", "-c",
          R"(while read -r line; do
  case $line in
    *processRecords*) action=processRecords; )" +
              checkpoint + R"( ;;
    *initialize*) action=initialize ;;
    *) action=leaseLost ;;
  esac
  echo '{"action":"status","responseFor":"'$action'"}'
done
)" + at_end};
}

const std::string send_checkpoint =
    R"(echo '{"action":"checkpoint","sequenceNumber":"'${number%%'"'*}'"}'; read -r line)";
const std::string at_last_record = R"(number=${line##*'sequenceNumber":"'}; )" + send_checkpoint;
const std::string at_first_record = R"(number=${line#*'sequenceNumber":"'}; )" + send_checkpoint;

const std::string records = R"("records":3,"bytes":10,"seconds":0)";
job small(const std::string& keys = "") { return job::parse("{" + records + keys + "}"); }
const job checkpoints_alone = small(R"(,"decodes":false)");
// Ten batches of three records, warm-up included.
const std::string decoded_all = "echo 300 bytes >&2";

/// What the measurement of such a client failed with; empty when it did not fail.
std::string failure(const std::vector<std::string>& command, const job& what = small()) {
  try {
    bench::measure_batches(what, command);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a client that decodes and checkpoints each batch is measured", "[bench]") {
  const json result = bench::measure_batches(small(), client(at_last_record, decoded_all));
  REQUIRE(result.at("batches") == 5);
  REQUIRE(result.at("records") == 15);
  REQUIRE(result.at("bytes") == 150);
  REQUIRE(result.at("checkpoints") == 5);
  REQUIRE(result.at("exit_status") == 0);
  REQUIRE(result.at("cpu_seconds") > 0);
}

TEST_CASE("a client that leaves out one checkpoint is not measured", "[bench]") {
  const std::string not_the_fourth =
      "n=$((n + 1)); [ $n = 4 ] || { " + at_last_record + "; action=processRecords; }";
  REQUIRE(failure(client(not_the_fourth, decoded_all)) == "the child did not checkpoint a batch");
}

TEST_CASE("a checkpoint at another record than the last ends the measurement", "[bench]") {
  REQUIRE(contains(failure(client(at_first_record)), "in processRecords the child wrote"));
}

TEST_CASE("a client that decoded other than what it was sent is not measured", "[bench]") {
  REQUIRE(failure(client(at_last_record, "echo 299 bytes >&2")) ==
          "the child decoded 299 bytes of 300");
  REQUIRE(failure(client(at_last_record, "echo 301 bytes >&2")) ==
          "the child decoded 301 bytes of 300");
}

TEST_CASE("a floor is measured without what it has decoded", "[bench]") {
  REQUIRE(failure(client(at_last_record), checkpoints_alone).empty());
}

TEST_CASE("a fixed dialogue has so many batches, of which each must be checkpointed", "[bench]") {
  const job three = small(R"(,"batches":3)");
  REQUIRE(bench::play_batches(three, client(at_last_record, "echo 90 bytes >&2")) ==
          json({{"checkpoints", 3}}));
  REQUIRE_THROWS_WITH(bench::play_batches(three, client("", "echo 90 bytes >&2")),
                      "the child did not checkpoint a batch");
  REQUIRE_THROWS_WITH(bench::play_batches(three, client(at_last_record, "echo 91 bytes >&2")),
                      "the child decoded 91 bytes of 90");
  REQUIRE_THROWS_WITH(
      bench::play_batches(three, client(at_last_record, "echo 90 bytes >&2; exit 3")),
      "the child ended with 3: 90 bytes\n");
}

TEST_CASE("starts are counted, each with a process of its own", "[bench]") {
  const json result = bench::measure_starts(job::parse(R"({"starts":3})"), client(at_last_record));
  REQUIRE(result.at("starts") == 3);
  REQUIRE(result.at("own_bytes") > 0);
  REQUIRE(result.at("idle_bytes") >= result.at("own_bytes"));
}

TEST_CASE("shards are driven at once, and every byte of each must be decoded", "[bench]") {
  const job three = small(R"(,"shards":3)");
  const json result = bench::measure_shards(three, client(at_last_record, "echo 150 bytes >&2"));
  REQUIRE(result.at("batches") == 15);
  REQUIRE(result.at("records") == 45);
  REQUIRE(result.at("bytes") == 450);
  REQUIRE(result.at("idle").at("threads") >= 3);
  REQUIRE(result.at("idle").at("descriptors") >= 9);
  REQUIRE(result.at("busy").at("own_bytes") > 0);
  REQUIRE_THROWS_WITH(bench::measure_shards(three, client(at_last_record, "echo 149 bytes >&2")),
                      "the child decoded 447 bytes of 450");
  REQUIRE_THROWS_WITH(bench::measure_shards(three, client("")),
                      "the child did not checkpoint a batch");
}

TEST_CASE("a client's figures include those of the processes that it has started", "[bench]") {
  bench::measured_child one({"/bin/sh", "-c", "sleep 60 & echo started; wait"}, std::nullopt);
  REQUIRE(one.read_line() == "started");
  REQUIRE(one.processes().size() == 2);
  REQUIRE(one.threads() == 2);
  REQUIRE(one.descriptors() >= 6);
}

TEST_CASE("a job with an unknown key or duty is refused", "[bench]") {
  REQUIRE_THROWS_WITH(job::parse(R"({"record":3})"), "unknown key 'record' in the job");
}

TEST_CASE("a batch's line is what the daemon writes", "[bench]") {
  bench::batch_line line(2, 4);
  line.renumber(41);
  std::string form(line.text());
  const json parsed = json::parse(form);
  for (const json& record : parsed.at("records")) {
    const std::string data = record.at("data"), key = record.at("partitionKey");
    REQUIRE(data.size() == 8);
    REQUIRE(key.size() == 12);
    form.replace(form.find(data), data.size(), "DATA");
    form.replace(form.find(key), key.size(), "KEY");
  }
  // As in samples/transcripts, which are the real daemon's (P13).
  REQUIRE(
      form ==
      R"({"action":"processRecords","records":[)"
      R"({"data":"DATA","partitionKey":"KEY",)"
      R"("sequenceNumber":"49590338271490256608559692538361571095920000004100000000",)"
      R"("approximateArrivalTimestamp":1763700000000,"subSequenceNumber":0,"action":"record"},)"
      R"({"data":"DATA","partitionKey":"KEY",)"
      R"("sequenceNumber":"49590338271490256608559692538361571095920000004100000001",)"
      R"("approximateArrivalTimestamp":1763700000000,"subSequenceNumber":0,"action":"record"}],)"
      R"("millisBehindLatest":0})"
      "\n");
}
