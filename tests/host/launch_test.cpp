// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/launch.hpp"

#include <string>

#include "support/catch.hpp"
#include "tool/process/program.hpp"

using namespace kclxx::host;

TEST_CASE("the stream of the ARN comes first", "[launch]") {
  const auto entries = parse_properties(
      "streamName=other\nstreamArn=arn:aws:kinesis:eu-central-1:123456789012:stream/mine");
  CHECK(stream_name(entries, kcl_version::kcl2) == "mine");
  CHECK(stream_name(entries, kcl_version::kcl3) == "mine");
}

TEST_CASE("the daemon and its children get the same worker id", "[launch]") {
  auto none = parse_properties("applicationName=app\nworkerId=");
  CHECK(settle_worker_id(none, kcl_version::kcl3, "made") == "made");
  CHECK(write_properties(none) == "applicationName=app\nworkerId=made\n");
  auto set = parse_properties("workerIdentifier=mine");
  CHECK(settle_worker_id(set, kcl_version::kcl3, "made") == "mine");
  CHECK(write_properties(set) == "workerId=mine\n");
}

TEST_CASE("the shipped logging keeps the children's stderr out of the daemon's log", "[launch]") {
  CHECK(
      embedded::logback.find(
          R"(<logger name="software.amazon.kinesis.multilang.DrainChildSTDERRTask" level="OFF"/>)") !=
      std::string_view::npos);
}

TEST_CASE("a worker that gives up is ended with the last cause, in one line", "[daemon]") {
  const auto end = explain(
      ": Unable to initialize after 20 attempts. Shutting down. java.lang.RuntimeException: "
      "java.lang.IllegalStateException: AssignmentMode is not initialized at a.b.C(C.java:1)");
  REQUIRE(end);
  CHECK(end->what ==
        "the worker could not be initialized: "
        "java.lang.IllegalStateException: AssignmentMode is not initialized");
  CHECK(end->is_end);
  CHECK(explain(": Unable to initialize after 3 attempts. Shutting down.") ==
        start_failure{"the worker could not be initialized", true});
}

TEST_CASE("a daemon of several streams names the worker that gives up", "[daemon][streams]") {
  CHECK(explain("events: Unable to initialize after 3 attempts. Shutting down.") ==
        start_failure{"the worker of events could not be initialized", true});
}

TEST_CASE("other failures of a worker are left to the daemon's own words", "[daemon]") {
  CHECK_FALSE(explain(": Worker.run caught exception, sleeping for 1000 milli seconds! a.b.C: no"));
  CHECK_FALSE(explain(": Caught exception when initializing LeaseCoordinator a.b.C: no"));
  CHECK_FALSE(explain(""));
}
