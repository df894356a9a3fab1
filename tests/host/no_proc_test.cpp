// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

#ifndef KCLXX_IS_SANITIZED  // LeakSanitizer needs /proc
TEST_CASE("without /proc the daemon is not started, and check judges the keys: one line says so") {
  const sandbox box;
  box.program("bin/java", "echo java\n");
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  box.write("a.properties",
            "executableName=/bin/true\napplicationName=my-app\nstreamName=my-stream\n"
            "AwsCredentialsProvider=DefaultCredentialsProvider\nretrievalMode=POLLING\n"
            "workerId=me\nregionName=eu-central-1\n");
  const std::string why = "Java gets its files by /proc, which is not mounted here: mount ";
  const auto run = box.kclxx_without_proc({"daemon", "run", "a.properties", "--jars", "jars"});
  CAPTURE(run.out, run.err);
  CHECK(run.status == 5);
  CHECK(run.out.empty());
  CHECK(contains(run.err, "kclxx daemon run: " + why + "-t proc proc /proc\n"));

  const auto check = box.kclxx_without_proc({"daemon", "check", "a.properties", "--jars", "jars"});
  CAPTURE(check.out, check.err);
  CHECK(check.status == 0);
  CHECK(contains(check.err, "only the keys were judged, not their values: "));
}
#endif
