// SPDX-License-Identifier: Apache-2.0
// A real child whose stderr is a full pipe that nobody reads.
#include <chrono>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

namespace {

const scripted_daemon::start_options full_stderr{
    .input_file = {}, .environment = {"QUIET=1"}, .stderr_is_full = true};
const std::string blank_line = "   ";  // the child logs it

}  // namespace

TEST_CASE("a stderr that nobody reads holds up neither the dialogue nor its end",
          "[process][P31]") {
  scripted_daemon daemon({child, "at_once"}, full_stderr);
  start(daemon);
  daemon.send(blank_line);
  daemon.records({"checkpoint"});
  daemon.expect_checkpoint("1");
  daemon.answer("ThrottlingException");  // logged, too
  daemon.expect_checkpoint("1");
  daemon.answer();
  daemon.expect_status("processRecords");
  daemon.close_input();
  CHECK(daemon.wait_exit() == 0);
}

TEST_CASE("a child that nobody's stderr hears from leaves with the status of its failure",
          "[process][P53][P57]") {
  struct failure {
    const char* option;
    std::vector<std::string> records;
    int status;
  };
  const auto sample = GENERATE(values<failure>({
      {"at_once", {"throw"}, 10},
      {"short_grace", {"sleep"}, 13},
      {"short_grace", {"hang in the destructor"}, 13},
  }));
  scripted_daemon daemon({child, sample.option}, full_stderr);
  start(daemon);
  daemon.send(blank_line);
  daemon.records(sample.records);
  if (sample.status == 13) daemon.close_input();  // before the exception it would be status 12
  CHECK(daemon.wait_exit() == sample.status);
}
