// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "support/catch.hpp"
#include "support/checked_properties.hpp"
#include "tool/daemon/property_table.hpp"

using namespace kclxx::test;

namespace {

std::string read(const std::string& path) { return read_file(KCLXX_SOURCE_DIR "/" + path); }

std::vector<diagnostic> found_in(const std::string& command, const executable_look& at = look) {
  std::vector<diagnostic> found;
  check_executable(parse_properties("executableName=" + command), at, found);
  return found;
}

/// What is found first; empty: nothing.
std::string what(const std::string& command, const executable_look& at = look) {
  const auto found = found_in(command, at);
  return found.empty() ? std::string() : found.front().what;
}

}  // namespace

TEST_CASE("a sound file has no diagnostics", "[diagnostics]") {
  for (const auto& [which, text] : sound) {
    CAPTURE(name_of(which));
    CHECK(with("", which).empty());
  }
}

TEST_CASE("the shipped files have no diagnostics but their program, which is the user's",
          "[diagnostics]") {
  for (const char* name : {"properties/aws.properties", "properties/local.properties"}) {
    CAPTURE(name);
    const auto all = parse_properties(read(name));
    REQUIRE_FALSE(all.empty());
    const auto found = check(all, kcl_version::kcl3, {look});
    REQUIRE(found.size() == 1);
    CHECK(contains(found.front().what, "executableName names \"./"));
    const auto at_home = [](const std::string&) { return executable_state::ok; };
    CHECK(check(all, kcl_version::kcl3, {at_home}).empty());
  }
}

TEST_CASE("a diagnostic has its line, the reason and the fix", "[diagnostics]") {
  const auto found = checked(sound.at(kcl_version::kcl3) + "\n\nmaxRecord=5\n");
  REQUIRE(found.size() == 1);
  CHECK(found.front() == diagnostic{severity::error, 12, "", "maxRecord is not a key of KCL 3.x",
                                    "The daemon ignores it, without a warning.",
                                    "Did you mean maxRecords?"});
}

TEST_CASE("diagnostics come in the file's order, those of no line last", "[diagnostics]") {
  const auto found = checked("foo=1\nmaxRecords=x\nbar=2\n");
  REQUIRE(found.size() > 4);
  CHECK(found[0].line == 1);
  CHECK(found[1].line == 2);
  CHECK(found[2].line == 3);
  CHECK(found[3].line == 0);
}

TEST_CASE("a mis-cased key is named with its right spelling", "[diagnostics]") {
  const auto found = checked(sound.at(kcl_version::kcl3) + "MetricsLevel=NONE\nDynamoDBEndpoint=x");
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "MetricsLevel is misspelt: keys are case-sensitive");
  CHECK(found[0].fix == "Write metricsLevel.");
  CHECK(found[1].fix == "Write dynamoDBEndpoint.");
}

TEST_CASE("each major version takes some keys in other cases, too", "[diagnostics]") {
  CHECK(with("aWSCREDENTIALSproviderDynamoDB=DefaultCredentialsProvider").empty());
  CHECK(contains(with("AwsCredentialsProviderdynamodb=x"), "misspelt"));
  CHECK(with("MaxRecords=10", kcl_version::kcl1).empty());
  CHECK(contains(with("MAXRecords=10", kcl_version::kcl1), "misspelt"));
  CHECK(contains(with("StreamName=x", kcl_version::kcl1), "misspelt"));
  CHECK(contains(with("awsCredentialsProvider=x", kcl_version::kcl2), "misspelt"));
}

TEST_CASE("a key of another major version is named as that", "[diagnostics]") {
  CHECK(contains(with("retrievalMode=POLLING", kcl_version::kcl1),
                 "retrievalMode is a key of KCL 2.x and KCL 3.x, not of KCL 1.x"));
  CHECK(contains(with("clientVersionConfig=CLIENT_VERSION_CONFIG_3X", kcl_version::kcl2),
                 "is a key of KCL 3.x, not of KCL 2.x"));
  CHECK(contains(with("maxCacheByteSize=1"), "is a key of KCL 1.x, not of KCL 3.x"));
}

TEST_CASE("the step after which KCL 2 cannot be used is a warning, and the one before needs 3.5",
          "[diagnostics]") {
  const std::string step = "clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X";
  const auto found = [&](const std::string& line, const std::string& core) {
    const auto all = parse_properties(sound.at(kcl_version::kcl3) + line);
    return check(all, kcl_version::kcl3, {look, false, core});
  };
  for (const char* core : {"", "3.5.0", "3.10.1"}) {
    CAPTURE(core);
    const auto warned = found(step, core);
    REQUIRE(warned.size() == 1);
    CHECK(warned.front().level == severity::warning);
    CHECK(contains(warned.front().fix, "COMPATIBLE_WITH_2X_PHASE1 until"));
    CHECK(found(step + "_PHASE1", core).empty());
  }
  CHECK(found(step, "3.4.2").empty());
  const auto unknown = found(step + "_PHASE1", "3.4.2");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front().level == severity::error);
  CHECK(found("clientVersionConfig=CLIENT_VERSION_CONFIG_3X", "").empty());
}

TEST_CASE("keys that only the daemon's documents have come with advice", "[diagnostics]") {
  const auto found = checked(sound.at(kcl_version::kcl3) + "leaseTableScanTotalSegments=3");
  REQUIRE(found.size() == 1);
  CHECK(contains(found.front().fix, "3.1.3"));
}

TEST_CASE("keys inside the AWS clients are left alone", "[diagnostics]") {
  CHECK(with("cloudWatchClient.endpointOverride=http://127.0.0.1:1").empty());
  CHECK(contains(with("kinesisClient.=x"), "not a key"));
  CHECK(contains(with("kinesisClient.region=x", kcl_version::kcl1), "not a key"));
}

TEST_CASE("what must be there and is not is an error", "[diagnostics]") {
  for (const char* key : {"executableName", "applicationName", "streamName"}) {
    for (const auto& [which, text] : sound) {
      const auto found = without(key, which);
      REQUIRE(found.size() == 1);
      CHECK(found.front().what == std::string(key) + " is not set");
      CHECK(found.front().level == severity::error);
    }
  }
  CHECK(without("AwsCredentialsProvider").size() == 1);
  CHECK(contains(with("applicationName=  \nstreamName="), "streamName is empty"));
}

TEST_CASE("defaults that are seldom what is wanted are warnings", "[diagnostics][P33]") {
  const auto warned = [](const std::string& key, const std::string& why) {
    const auto found = without(key);
    REQUIRE(found.size() == 1);
    CHECK(found.front().level == severity::warning);
    CHECK(contains(found.front().why, why));
  };
  warned("initialPositionInStream", "starts at LATEST");
  warned("regionName", "comes from AWS_REGION");
  warned("retrievalMode", "billed");
  warned("shutdownGraceMillis", "no child receives shutdownRequested");
  warned("logWarningForTaskAfterMillis", "waits indefinitely");
  CHECK(contains(with("shutdownGraceMillis=0"), "warning: shutdownGraceMillis is 0"));
  CHECK(contains(with("retrievalMode=DEFAULT"), "warning: retrievalMode is DEFAULT"));
  CHECK_FALSE(contains(with("retrievalMode=DEFAULT\nmaxRecords=10"), "retrievalMode is DEFAULT"));
}

TEST_CASE("a missing regionName is no problem when AWS_REGION is set", "[diagnostics]") {
  auto all = parse_properties(sound.at(kcl_version::kcl3));
  std::erase_if(all, [](const property& property) { return property.key == "regionName"; });
  CHECK(check(all, kcl_version::kcl3, {look, false}).size() == 1);
  CHECK(check(all, kcl_version::kcl3, {look, true}).empty());
}

TEST_CASE("the executable is looked for as the daemon would start it", "[diagnostics]") {
  CHECK(what("/bin/child").empty());
  CHECK(what("/bin/child  with arguments").empty());
  CHECK(contains(what("/bin/absent 1"), "\"/bin/absent\", which is not there"));
  CHECK(contains(what("/bin/text"), "cannot be executed"));
  CHECK(contains(what("/bin"), "is a directory"));
  CHECK(contains(what("/my programs/child 1 2"), "\"/my programs/child\", which has a blank"));
  CHECK(contains(what("\"/bin/child\" 1"), "quotes"));
  CHECK(contains(what("$HOME/child"), "quotes, ~ or $"));
}

TEST_CASE("after kclxx-share the program is looked for", "[diagnostics]") {
  const auto with_launcher = [](const std::string& program) {
    return program == "kclxx-share" || program == "/opt/kclxx-share" ? executable_state::ok
                                                                     : look(program);
  };
  const auto what = [&](const std::string& command) { return ::what(command, with_launcher); };
  CHECK(what("kclxx-share /bin/child").empty());
  CHECK(what("/opt/kclxx-share -- /bin/child 1 2").empty());
  CHECK(contains(what("kclxx-share /bin/absent 1"), "\"/bin/absent\", which is not there"));
  CHECK(contains(what("kclxx-share  /my programs/child 1"), "\"/my programs/child\""));
  CHECK(contains(what("kclxx-share"), "names kclxx-share and no program"));
  CHECK(contains(what("/absent/kclxx-share /bin/child"), "\"/absent/kclxx-share\", which is not"));
}

TEST_CASE("after kclxx capture the program is looked for, and kclxx-share goes with it in no order",
          "[diagnostics]") {
  const auto with_tool = [](const std::string& program) {
    return program == "kclxx" || program == "kclxx-share" ? executable_state::ok : look(program);
  };
  const auto what = [&](const std::string& command) { return ::what(command, with_tool); };
  CHECK(what("kclxx capture --output captured -- /bin/child 1").empty());
  CHECK(what("kclxx capture --output captured -- /bin/child kclxx-share").empty());
  for (const char* const both : {"kclxx-share kclxx capture --output captured -- /bin/child 1",
                                 "kclxx capture --output captured -- kclxx-share /bin/child 1"}) {
    CHECK(contains(what(both), "has kclxx-share and kclxx capture"));
  }
  CHECK(contains(what("kclxx capture --output captured -- ./nope"), "\"./nope\", which is not"));
  CHECK(contains(what("kclxx capture --output captured --"), "names kclxx and no program"));
}

TEST_CASE("a program that is elsewhere is not looked for, but its name is", "[diagnostics]") {
  const auto what = [](const std::string& command) { return ::what(command, look_at_name); };
  CHECK(what("./nope 1").empty());
  CHECK(what("kclxx-share ./nope").empty());
  CHECK(contains(what("kclxx-share"), "names kclxx-share and no program"));
  CHECK(contains(what("./nope > log"), "executableName has >"));
  CHECK(contains(what("~/nope"), "has quotes, ~ or $ in \"~/nope\""));
  CHECK(contains(what("\"my program\" 1"), "has quotes, ~ or $"));
}

TEST_CASE("what only a shell understands is a warning", "[diagnostics]") {
  for (const char* rest : {"\"a b\"", "> log", "2>&1", "| tee log", "1 &", "&& next", "'x'"}) {
    CAPTURE(rest);
    const auto found = found_in(std::string("/bin/child ") + rest);
    REQUIRE(found.size() == 1);
    CHECK(found.front().level == severity::warning);
    CHECK(contains(found.front().why, "There is no shell"));
  }
  CHECK(found_in("/bin/child --a=b -- x_1 /c:d,e 2a>b " + std::string(1 << 20, 'a')).empty());
}

TEST_CASE("keys of the way to read that is not used are a warning", "[diagnostics]") {
  CHECK(contains(with("fanoutConfig.consumerName=me"), "fanoutConfig.consumerName has no effect"));
  CHECK(contains(with("retrievalMode=FANOUT\nidleTimeBetweenReadsInMillis=500"),
                 "idleTimeBetweenReadsInMillis has no effect"));
  CHECK(contains(with("retrievalMode=FANOUT\nmaxRecords=100"), "maxRecords has no effect"));
  CHECK(with("idleTimeBetweenReadsInMillis=500").empty());
}

TEST_CASE("regionName is held against streamArn", "[diagnostics]") {
  const std::string arn = "streamArn=arn:aws:kinesis:REGION:123456789012:stream/stream";
  const auto in = [&](const std::string& region) {
    std::string text = arn;
    return with(text.replace(text.find("REGION"), 6, region));
  };
  CHECK(contains(in("eu-west-1"), "warning: regionName is not the region of streamArn"));
  CHECK(in("eu-central-1").empty());
}

TEST_CASE("a byte order mark is named, and not taken for a key", "[diagnostics]") {
  const auto found = checked("\xef\xbb\xbf" + sound.at(kcl_version::kcl3));
  REQUIRE(found.size() == 2);  // the key behind it is missing
  CHECK(found.front().what == "the file begins with a byte order mark");
}

TEST_CASE("a key that is there twice is mentioned where it does not count", "[diagnostics]") {
  const auto found = checked("maxRecords=1\n" + sound.at(kcl_version::kcl3) + "maxRecords=2\n");
  REQUIRE(found.size() == 1);
  CHECK(found.front().line == 1);
  CHECK(found.front().level == severity::warning);
  CHECK(found.front().what == "maxRecords is repeated (line 11)");
}

TEST_CASE("two keys for one field are an error, since their order is undefined", "[diagnostics]") {
  CHECK(contains(with("workerId=a\nworkerIdentifier=b"),
                 "workerId is set together with workerIdentifier"));
  CHECK(contains(with("initialPositionInStreamExtended=1600000000"), "is set together with"));
  CHECK(contains(with("awsCredentialsProvider=DefaultCredentialsProvider"), "is repeated as"));
}

TEST_CASE("what has no effect is a warning, what stops the daemon an error", "[diagnostics]") {
  CHECK(contains(with("validateSequenceNumberBeforeCheckpointing=false"), "warning: "));
  CHECK(with("validateSequenceNumberBeforeCheckpointing=false", kcl_version::kcl1).empty());
  CHECK(contains(with("shardPrioritization=x"), "error: shardPrioritization cannot be set"));
}

TEST_CASE("a diagnostic of the environment names the variable", "[diagnostics]") {
  auto all = parse_properties(sound.at(kcl_version::kcl3));
  all.push_back({"maxRecords", "x", 0, "KCLXX_PROPERTY_maxRecords"});
  const auto found = check(all, kcl_version::kcl3, {look});
  REQUIRE(found.size() == 1);
  CHECK(found.front().origin == "KCLXX_PROPERTY_maxRecords");
}

TEST_CASE("each key is in the table once", "[diagnostics]") {
  std::map<std::string_view, int> count;
  for (const property_row& row : property_table()) ++count[row.key];
  for (const auto& [key, n] : count) {
    CAPTURE(key);
    CHECK(n == 1);
  }
}

TEST_CASE("a version of the KCL that should not be used any more is named", "[daemon][check]") {
  const auto found_for = [](const char* version) {
    std::vector<diagnostic> found;
    check_kcl(*kcl_choice::parse(version), found);
    return found;
  };
  REQUIRE(found_for("1").size() == 1);
  CHECK(found_for("1").front().origin == "KCL 1.15.3");
  CHECK(contains(found_for("1.14.0").front().what, "support has ended"));
  for (const char* blocked : {"2.5.4", "2.6.0", "2.0.10"}) {
    REQUIRE(found_for(blocked).size() == 1);
    CHECK(found_for(blocked).front().level == severity::warning);
    CHECK(contains(found_for(blocked).front().what, "stop processing shards"));
  }
  for (const char* good : {"2", "2.6.1", "2.10.0", "3", "3.0.0"}) CHECK(found_for(good).empty());
}

TEST_CASE("the tested versions are those of the Maven projects", "[daemon]") {
  for (const kcl_version which : {kcl_version::kcl1, kcl_version::kcl2, kcl_version::kcl3}) {
    const auto [core, daemon] = tested_parts(which);
    const std::string pom(jars_of(which).pom);
    CHECK(contains(pom, "<version>" + std::string(core) + "</version>"));
    const std::string sums(jars_of(which).checksums);
    CHECK(contains(sums, "amazon-kinesis-client-" + std::string(core) + ".jar"));
    if (which == kcl_version::kcl1) continue;
    CHECK(contains(pom, "<core.version>" + std::string(core) + "<"));
    CHECK(contains(pom, "<multilang.version>" + std::string(daemon) + "<"));
    CHECK(contains(sums, "amazon-kinesis-client-multilang-" + std::string(daemon) + ".jar"));
  }
}
