// SPDX-License-Identifier: Apache-2.0
// The driver of scripts/bench: a client that is measured must have done the work.
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "batch_line.hpp"
#include "measure.hpp"
#include "support/catch.hpp"

using bench::job;
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

job small() { return job::parse(R"({"records":3,"bytes":10,"seconds":0})"); }

/// What the measurement of such a client failed with; empty when it did not fail.
std::string failure(const std::vector<std::string>& command) {
  try {
    bench::measure_batches(small(), command);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a client that checkpoints each batch is measured", "[bench]") {
  const json result = bench::measure_batches(small(), client(at_last_record));
  REQUIRE(result.at("batches") == 5);
  REQUIRE(result.at("records") == 15);
  REQUIRE(result.at("bytes") == 150);
  REQUIRE(result.at("checkpoints") == 5);
  REQUIRE(result.at("exit_status") == 0);
  REQUIRE(result.at("decoded") == false);
  REQUIRE(result.at("cpu_seconds") > 0);
}

TEST_CASE("a checkpoint at another record than the last ends the measurement", "[bench]") {
  REQUIRE(contains(failure(client(at_first_record)), "in processRecords the child wrote"));
}

TEST_CASE("a client that decoded less than it was sent is not measured", "[bench]") {
  // Ten batches of three records, warm-up included.
  REQUIRE(failure(client(at_last_record, "echo 299 bytes >&2")) ==
          "the child decoded 299 bytes of 300");
  REQUIRE(
      bench::measure_batches(small(), client(at_last_record, "echo 300 bytes >&2")).at("decoded") ==
      true);
}

TEST_CASE("a status for another action ends the measurement", "[bench]") {
  REQUIRE(contains(failure(client("action=initialize")), "in processRecords the child wrote"));
}

TEST_CASE("when a client ends, what it wrote to stderr is reported", "[bench]") {
  REQUIRE(contains(failure(client("echo out of order >&2; exit 3")), "out of order"));
}

TEST_CASE("starts are counted, each with a process of its own", "[bench]") {
  const json result = bench::measure_starts(job::parse(R"({"starts":3})"), client(at_last_record));
  REQUIRE(result.at("starts") == 3);
  REQUIRE(result.at("own_bytes") > 0);
  REQUIRE(result.at("idle_bytes") >= result.at("own_bytes"));
}

TEST_CASE("a job with an unknown key is refused", "[bench]") {
  REQUIRE_THROWS_WITH(job::parse(R"({"record":3})"), "unknown key 'record' in the job");
}

TEST_CASE("a batch's line is what the daemon writes, and its numbers only go up", "[bench]") {
  bench::batch_line line(3, 10);
  line.renumber(41);
  const json before = json::parse(line.text());
  line.renumber(42);
  const json after = json::parse(line.text());
  REQUIRE(line.payload() == 30);
  REQUIRE(after.at("records").size() == 3);
  REQUIRE(after.at("records")[0].at("data").get<std::string>().size() == 16);
  REQUIRE(after.at("records")[2].at("sequenceNumber") == line.last_sequence_number());
  REQUIRE(line.last_sequence_number().size() == 56);
  REQUIRE(before.at("records")[2].at("sequenceNumber") <
          after.at("records")[0].at("sequenceNumber"));
}
