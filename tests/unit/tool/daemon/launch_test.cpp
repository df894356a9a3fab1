// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/launch.hpp"

#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"
#include "tool/process/program.hpp"

using namespace kclxx::tool;
using kclxx::test::contains;

namespace {

using words = std::vector<std::string>;

const properties complete = parse_properties("applicationName=app\nstreamName=stream\nworkerId=me");

launch_settings settings(kcl_version which) {
  launch_settings made;
  made.which = which;
  made.java = "/opt/java";
  made.class_path = "/jars/a.jar";
  made.properties_file = "/p";
  made.logging_file = "/l";
  return made;
}

}  // namespace

TEST_CASE("the daemons of 2.x and 3.x are started alike", "[launch]") {
  for (const auto which : {kcl_version::kcl2, kcl_version::kcl3}) {
    CHECK(compose(settings(which), complete).command ==
          words{"/opt/java", "-Dfile.encoding=UTF-8", "-XX:+UseSerialGC", "-XX:MaxRAMPercentage=50",
                "-XX:MaxNewSize=64m", "-XX:TieredStopAtLevel=1", "-XX:MetaspaceSize=96m", "-cp",
                "/jars/a.jar", "software.amazon.kinesis.multilang.MultiLangDaemon", "-p", "/p",
                "-l", "/l"});
  }
}

TEST_CASE("the user's Java options come after ours, and ours give way", "[launch]") {
  launch_settings launch = settings(kcl_version::kcl3);
  launch.java_options = {"-XX:+UseG1GC", "-cp", "/mine/*"};
  launch.java_variables = {"-XX:MaxNewSize=9m", "-XX:TieredStopAtLevel=4"};
  const auto command = compose(launch, complete).command;
  CHECK(words(command.begin() + 1, command.begin() + 9) ==
        words{"-Dfile.encoding=UTF-8", "-XX:MaxRAMPercentage=50", "-XX:MetaspaceSize=96m", "-cp",
              "/jars/a.jar", "-XX:+UseG1GC", "-cp", "/mine/*"});
}

namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("children get the names of stream, application and worker", "[launch]") {
  const variables expected{{"KCLXX_APPLICATION_NAME", "app"},
                           {"KCLXX_STREAM_NAME", "stream"},
                           {"KCLXX_WORKER_ID", "me"}};
  CHECK(compose(settings(kcl_version::kcl3), complete).environment == expected);
}

TEST_CASE("the stream of the ARN comes first", "[launch]") {
  const auto all = parse_properties(
      "streamName=other\nstreamArn=arn:aws:kinesis:eu-central-1:123456789012:stream/mine");
  CHECK(stream_name(all, kcl_version::kcl2) == "mine");
  CHECK(stream_name(all, kcl_version::kcl3) == "mine");
}

TEST_CASE("the daemon and its children get the same worker id", "[launch]") {
  auto none = parse_properties("applicationName=app\nworkerId=");
  CHECK(settle_worker_id(none, kcl_version::kcl3, "made") == "made");
  CHECK(write_properties(none) == "applicationName=app\nworkerId=made\n");
  auto set = parse_properties("workerIdentifier=mine");
  CHECK(settle_worker_id(set, kcl_version::kcl3, "made") == "mine");
  CHECK(write_properties(set) == "workerId=mine\n");
}

TEST_CASE("each version has its own checksums and folder", "[launch]") {
  std::set<std::string_view> folders;
  std::set<std::string_view> hashes;
  for (const auto which : {kcl_version::kcl2, kcl_version::kcl3}) {
    const embedded::project& jars = jars_of(which);
    CHECK(jars.folder.size() == std::string_view("kcl3-0123456789ab").size());
    CHECK(jars.pom.find("<packaging>pom</packaging>") != std::string_view::npos);
    CHECK(jars.checksums.find("  amazon-kinesis-client-multilang-") != std::string_view::npos);
    CHECK(jars.checksums.find("  sso-") != std::string_view::npos);
    CHECK(jars.checksums.find("  ssooidc-") != std::string_view::npos);
    folders.insert(jars.folder);
    hashes.insert(jars.folder.substr(5));
  }
  CHECK(folders.size() == 2);
  CHECK(hashes.size() == 2);
}

TEST_CASE("the shipped logging keeps the children's stderr out of the daemon's log", "[launch]") {
  CHECK(
      embedded::logback.find(
          R"(<logger name="software.amazon.kinesis.multilang.DrainChildSTDERRTask" level="OFF"/>)") !=
      std::string_view::npos);
}

TEST_CASE("rows of KCL 3 are explained, and end a worker only when it gives up", "[daemon]") {
  const std::string thrown =
      "java.lang.NullPointerException: leaseCounter is marked non-null but is null "
      "at software.amazon.kinesis.leases.Lease.leaseCounter(Lease.java:1)";
  const auto attempt = explain("Caught exception when initializing LeaseCoordinator " + thrown);
  REQUIRE(attempt);
  CHECK(contains(attempt->what, "rows of KCL 3"));
  CHECK_FALSE(attempt->is_end);
  const auto running = explain("Throwable encountered in lease taking thread " + thrown);
  CHECK(running == attempt);
  const auto end = explain(
      "Unable to initialize after 20 attempts. Shutting down. java.lang.RuntimeException: " +
      thrown);
  REQUIRE(end);
  CHECK(end->what == attempt->what);
  CHECK(end->is_end);
}

TEST_CASE("a worker that gives up is ended with the last cause, in one line", "[daemon]") {
  const auto end = explain(
      "Unable to initialize after 20 attempts. Shutting down. java.lang.RuntimeException: "
      "java.lang.IllegalStateException: AssignmentMode is not initialized at a.b.C(C.java:1)");
  REQUIRE(end);
  CHECK(end->what ==
        "the worker could not be initialized: "
        "java.lang.IllegalStateException: AssignmentMode is not initialized");
  CHECK(end->is_end);
  CHECK(explain("Unable to initialize after 3 attempts. Shutting down.") ==
        start_failure{"the worker could not be initialized", true});
}

TEST_CASE("other failures of a worker are left to the daemon's own words", "[daemon]") {
  CHECK_FALSE(explain("Worker.run caught exception, sleeping for 1000 milli seconds! a.b.C: no"));
  CHECK_FALSE(explain("Caught exception when initializing LeaseCoordinator a.b.C: no"));
  CHECK_FALSE(explain(""));
}
