// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/check.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"

using namespace kclxx::host;
using kclxx::test::contains;
using kclxx::tool::executable_state;

namespace {

const kcl_choice kcl2{kcl_version::kcl2, ""};
const kcl_choice kcl3{kcl_version::kcl3, ""};

/// Properties without a diagnostic.
const std::string common =
    "executableName=/bin/child\napplicationName=my-app\nstreamName=stream\n"
    "regionName=eu-central-1\nretrievalMode=POLLING\ninitialPositionInStream=LATEST\n"
    "shutdownGraceMillis=5000\nlogWarningForTaskAfterMillis=60000\n";
std::string sound(const kcl_choice& kcl) {
  return common + (kcl.which == kcl_version::kcl3
                       ? "AwsCredentialsProvider=DefaultCredentialsProvider\n"
                       : "AWSCredentialsProvider=DefaultAWSCredentialsProviderChain\n");
}

executable_state look(const std::string& program) {
  if (program == "/bin/child" || program == "/my programs/child") return executable_state::ok;
  if (program == "/bin/text") return executable_state::not_executable;
  if (program == "/bin") return executable_state::directory;
  return executable_state::missing;
}

std::vector<diagnostic> checked(const std::string& text, const kcl_choice& kcl = kcl3) {
  return check(parse_properties(text), {look, false, kcl});
}

/// A sound file with these lines in place of those of the same keys.
properties sound_with(const std::string& lines, const kcl_choice& kcl) {
  const properties added = parse_properties(lines);
  properties entries = parse_properties(sound(kcl));
  for (const property& entry : added) {
    std::erase_if(entries, [&](const property& old) { return old.key == entry.key; });
  }
  entries.insert(entries.end(), added.begin(), added.end());
  return entries;
}

std::string text_of(const std::vector<diagnostic>& found) {
  std::string result;
  for (const diagnostic& finding : found) {
    result += (finding.level == severity::error ? "error: " : "warning: ") + finding.what + "\n" +
              finding.why + "\n";
  }
  return result;
}

/// What is found in a sound file with these lines.
std::string with(const std::string& lines, const kcl_choice& kcl = kcl3) {
  return text_of(check(sound_with(lines, kcl), {look, false, kcl}));
}

/// What is found in a sound file without the lines that begin so.
std::vector<diagnostic> without(const std::string& beginning, const kcl_choice& kcl = kcl3) {
  auto entries = parse_properties(sound(kcl));
  std::erase_if(entries, [&](const property& entry) { return entry.key.starts_with(beginning); });
  return check(entries, {look, false, kcl});
}

/// What is found when the daemon's reader has printed this of a sound file with these lines.
std::string read_as(const std::string& printed, const std::string& lines = "",
                    std::uint64_t heap = 0) {
  return text_of(
      check(sound_with(lines, kcl3), {look, false, kcl3, heap, parse_readings(printed)}));
}

std::vector<diagnostic> found_in(const std::string& command, const executable_look& at = look) {
  auto entries = parse_properties(sound(kcl3));
  entries.front().value = command;
  return check(entries, {at});
}

/// All that is found; empty: nothing.
std::string what(const std::string& command, const executable_look& at = look) {
  std::string texts;
  for (const diagnostic& finding : found_in(command, at)) texts += finding.what + "\n";
  return texts;
}

}  // namespace

TEST_CASE("a sound file has no diagnostics") {
  CHECK(with("", kcl2).empty());
  CHECK(with("", kcl3).empty());
}

TEST_CASE("the shipped files have no diagnostics but their program, which is the user's") {
  for (const char* name : {"properties/aws.properties", "properties/local.properties"}) {
    CAPTURE(name);
    const auto entries =
        parse_properties(kclxx::test::read_file(std::string(KCLXX_SOURCE_DIR "/") + name));
    REQUIRE_FALSE(entries.empty());
    const auto found = check(entries, {look});
    REQUIRE(found.size() == 1);
    CHECK(contains(found.front().what, "executableName names \"./"));
    const auto at_home = [](const std::string&) { return executable_state::ok; };
    CHECK(check(entries, {at_home}).empty());
  }
}

TEST_CASE("a diagnostic has its line, the reason and the fix") {
  const auto found = checked(sound(kcl3) + "\n\nmaxRecord=5\n");
  REQUIRE(found.size() == 1);
  CHECK(found.front() == diagnostic{severity::warning, 12, "", "maxRecord is not a key of KCL 3.x",
                                    "The daemon ignores it, without a warning.",
                                    "Did you mean maxRecords?"});
}

TEST_CASE("a mis-cased key is named with its right spelling") {
  const auto found = checked(sound(kcl3) + "MetricsLevel=NONE\nDynamoDBEndpoint=x");
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "MetricsLevel is misspelt: keys are case-sensitive");
  CHECK(found[0].fix == "Write metricsLevel.");
  CHECK(found[1].fix == "Write dynamoDBEndpoint.");
}

TEST_CASE("each major version takes some keys in other cases, too") {
  CHECK(with("aWSCREDENTIALSproviderDynamoDB=DefaultCredentialsProvider").empty());
  CHECK(contains(with("AwsCredentialsProviderdynamodb=x"), "misspelt"));
  CHECK(contains(with("StreamName=x"), "misspelt"));
  CHECK(contains(with("awsCredentialsProvider=x", kcl2), "misspelt"));
}

TEST_CASE("a key of another major version is named as that") {
  CHECK(contains(with("clientVersionConfig=CLIENT_VERSION_CONFIG_3X", kcl2),
                 "is a key of KCL 3.x, not of KCL 2.x"));
  CHECK(contains(with("maxCacheByteSize=1"), "is not a key of KCL 3.x"));
}

TEST_CASE("the step after which KCL 2 cannot be used is a warning, and the one before needs 3.5") {
  const std::string step = "clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X";
  const auto found = [&](const std::string& line, const std::string& core) {
    const auto entries = parse_properties(sound(kcl3) + line);
    return check(entries, {look, false, {kcl_version::kcl3, core}});
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

TEST_CASE("keys inside the AWS clients are left alone") {
  CHECK(with("cloudWatchClient.endpointOverride=http://127.0.0.1:1").empty());
  CHECK(contains(with("kinesisClient.=x"), "not a key"));
}

TEST_CASE("what must be there and is not is an error") {
  for (const char* key : {"executableName", "applicationName", "streamName"}) {
    for (const kcl_choice& kcl : {kcl2, kcl3}) {
      const auto found = without(key, kcl);
      REQUIRE(found.size() == 1);
      CHECK(found.front().what == std::string(key) + " is not set");
      CHECK(found.front().level == severity::error);
    }
  }
  CHECK(without("AwsCredentialsProvider").size() == 1);
  CHECK(without("AWSCredentialsProvider", kcl2).size() == 1);
  CHECK(with("streamName=\nstreamArn=arn:aws:kinesis:eu-central-1:123456789012:stream/s").empty());
  CHECK(contains(with("applicationName=  \nstreamName="), "streamName is empty"));
}

TEST_CASE("defaults that are seldom what is wanted are warnings", "[P33]") {
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

TEST_CASE("a missing regionName is no problem when AWS_REGION or each client has one") {
  auto entries = parse_properties(sound(kcl3));
  std::erase_if(entries, [](const property& property) { return property.key == "regionName"; });
  CHECK(check(entries, {look, false}).size() == 1);
  CHECK(check(entries, {look, true}).empty());
  for (const char* key :
       {"kinesisClient.region", "dynamoDbClient.region", "cloudWatchClient.region"}) {
    CHECK(check(entries, {look}).size() == 1);
    entries.push_back({key, "eu-west-1", 0, ""});
  }
  CHECK(check(entries, {look}).empty());
}

TEST_CASE("the executable is looked for as the daemon would start it") {
  CHECK(what("/bin/child").empty());
  CHECK(what("/bin/child  with arguments").empty());
  CHECK(contains(what("/bin/absent 1"), "\"/bin/absent\", which is not there"));
  CHECK(contains(what("/bin/text"), "cannot be executed"));
  CHECK(contains(what("/bin"), "is a directory"));
  CHECK(contains(what("/my programs/child 1 2"), "\"/my programs/child\", which has a blank"));
  CHECK(contains(what("\"/bin/child\" 1"), "quotes"));
  CHECK(contains(what("$HOME/child"), "quotes, ~ or $"));
}

TEST_CASE("after kclxx-share the program is looked for") {
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

TEST_CASE(
    "after kclxx capture the program is looked for, and kclxx-share goes with it in no order") {
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

TEST_CASE("a program that is elsewhere is not looked for, but its name is") {
  const auto what = [](const std::string& command) { return ::what(command, look_at_name); };
  CHECK(what("./nope 1").empty());
  CHECK(what("kclxx-share ./nope").empty());
  CHECK(contains(what("kclxx-share"), "names kclxx-share and no program"));
  CHECK(contains(what("./nope > log"), "executableName has >"));
  CHECK(contains(what("~/nope"), "has quotes, ~ or $ in \"~/nope\""));
  CHECK(contains(what("\"my program\" 1"), "has quotes, ~ or $"));
}

TEST_CASE("what only a shell understands is a warning") {
  for (const char* argument : {"\"a b\"", "> log", "2>&1", "| tee log", "1 &", "&& next", "'x'"}) {
    CAPTURE(argument);
    const auto found = found_in(std::string("/bin/child ") + argument);
    REQUIRE(found.size() == 1);
    CHECK(found.front().level == severity::warning);
    CHECK(contains(found.front().why, "There is no shell"));
  }
  CHECK(found_in("/bin/child --a=b -- x_1 /c:d,e 2a>b " + std::string(1 << 20, 'a')).empty());
}

TEST_CASE("keys of the way to read that is not used are a warning") {
  CHECK(contains(with("fanoutConfig.consumerName=me"), "fanoutConfig.consumerName has no effect"));
  CHECK(contains(with("retrievalMode=FANOUT\nidleTimeBetweenReadsInMillis=500"),
                 "idleTimeBetweenReadsInMillis has no effect"));
  CHECK(contains(with("retrievalMode=FANOUT\nmaxRecords=100"), "maxRecords has no effect"));
  CHECK(with("idleTimeBetweenReadsInMillis=500").empty());
}

TEST_CASE("regionName is held against streamArn") {
  const std::string arn = "streamArn=arn:aws:kinesis:REGION:123456789012:stream/stream";
  const auto in = [&](const std::string& region) {
    std::string text = arn;
    return with(text.replace(text.find("REGION"), 6, region));
  };
  CHECK(contains(in("eu-west-1"), "warning: regionName is not the region of streamArn"));
  CHECK(in("eu-central-1").empty());
}

TEST_CASE("a byte order mark is named, and not taken for a key") {
  const auto found = checked("\xef\xbb\xbf" + sound(kcl3));
  REQUIRE(found.size() == 2);  // the key behind it is missing
  CHECK(found.front().what == "the file begins with a byte order mark");
}

TEST_CASE("two keys for one field are named, since their order is undefined") {
  CHECK(contains(with("workerId=a\nworkerIdentifier=b"),
                 "workerId is set together with workerIdentifier"));
  CHECK(contains(with("initialPositionInStreamExtended=1600000000"), "is set together with"));
  for (const char* client : {"kinesisClient", "dynamoDbClient", "cloudWatchClient"}) {
    CHECK(contains(with(std::string(client) + ".region=eu-west-1"),
                   "warning: regionName is set together with " + std::string(client) + ".region"));
  }
  for (const std::pair<const char*, const char*>& pair :
       {std::pair("kinesisEndpoint", "kinesisClient"),
        std::pair("dynamoDBEndpoint", "dynamoDbClient")}) {
    const std::string endpoint = std::string(pair.second) + ".endpointOverride";
    CHECK(contains(with(std::string(pair.first) + "=http://a\n" + endpoint + "=http://b\n"),
                   std::string(pair.first) + " is set together with " + endpoint));
  }
  CHECK(contains(with("awsCredentialsProvider=DefaultCredentialsProvider"), "is repeated as"));
}

TEST_CASE("what has no effect is a warning, what stops the daemon an error") {
  CHECK(contains(with("validateSequenceNumberBeforeCheckpointing=false"), "warning: "));
  CHECK(contains(with("initialLeaseTableReadCapacity=50"), "has no effect"));
  CHECK(contains(with("initialLeaseTableWriteCapacity=50", kcl2), "has no effect"));
  CHECK(contains(with("maxLeasesToStealAtOneTime=4"), "has no effect"));
  CHECK(with("maxLeasesToStealAtOneTime=4", kcl2).empty());
  CHECK(with("maxLeasesToStealAtOneTime=4\n"
             "clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1")
            .empty());
  CHECK(contains(with("shardPrioritization=x"), "error: shardPrioritization cannot be set"));
}

TEST_CASE("a version of the KCL that should not be used any more is named") {
  const auto found_for = [](const char* version) {
    return check(parse_properties(sound(kcl2)), {look, false, *kcl_choice::parse(version)});
  };
  for (const char* blocked : {"2.5.4", "2.6.0", "2.0.10"}) {
    REQUIRE(found_for(blocked).size() == 1);
    CHECK(found_for(blocked).front().level == severity::warning);
    CHECK(contains(found_for(blocked).front().what, "stop processing shards"));
  }
  for (const char* good : {"2", "2.6.1", "2.10.0"}) CHECK(found_for(good).empty());
}

TEST_CASE("the tested versions are those of the checksums and the Maven project") {
  for (const kcl_version which : {kcl_version::kcl2, kcl_version::kcl3}) {
    const auto [core, daemon] = tested_parts(which);
    const std::string sums(jars_of(which).checksums);
    CHECK(contains(sums, "amazon-kinesis-client-" + std::string(core) + ".jar"));
    CHECK(contains(sums, "amazon-kinesis-client-multilang-" + std::string(daemon) + ".jar"));
    if (which == kcl_version::kcl2) continue;
    const std::string pom(jars_of(which).pom);
    CHECK(contains(pom, "<version>" + std::string(core) + "</version>"));
    CHECK(contains(pom, "<core.version>" + std::string(core) + "<"));
    CHECK(contains(pom, "<multilang.version>" + std::string(daemon) + "<"));
  }
}

TEST_CASE("a variable in a value is named: nobody expands it") {
  for (const char* line :
       {"workerId=$HOSTNAME", "workerId=${HOSTNAME}", "workerId={{ ansible_hostname }}",
        "workerId=%COMPUTERNAME%", "kinesisEndpoint=http://${LOCALSTACK_HOST}:4566",
        "workerId=$(hostname)", "workerId=<%= @name %>",
        "AwsCredentialsProvider=ProfileCredentialsProvider|$AWS_PROFILE"}) {
    CAPTURE(line);
    CHECK(contains(with(line), " has a variable in \""));
  }
  CHECK(contains(what("/bin/child $APP/main.py"), "has a variable"));
  for (const char* line :
       {"workerId=a$", "workerId=100%", "workerId=$1", "workerId=50%-60%", "workerId={a}"}) {
    CAPTURE(line);
    CHECK(with(line).empty());
  }
}

TEST_CASE("a name that AWS refuses is named") {
  CHECK(contains(with("applicationName=a b"), "error: applicationName cannot name a table"));
  CHECK(contains(with("applicationName=ab"), "error: "));
  CHECK(with("applicationName=a b\ntableName=a_b").find("error") == std::string::npos);
  CHECK(contains(with("tableName=a/b"), "error: tableName cannot name a table"));
  CHECK(contains(with("workerMetricsTableName=a b"), "warning: workerMetricsTableName"));
  CHECK(contains(with("coordinatorStateTableName=x"), "warning: coordinatorStateTableName"));
  CHECK(contains(with("streamName=my stream"), "error: streamName is \"my stream\""));
  const std::string table = "arn:aws:dynamodb:us-east-1:1:table/t/stream/2022";
  const std::string of_table = with("streamName=" + table + "\nregionName=us-east-1");
  CHECK(contains(of_table, "error: streamName is the ARN of a DynamoDB table's stream"));
  CHECK_FALSE(contains(of_table, "cannot name"));
  CHECK_FALSE(contains(with("streamArn=" + table), "regionName"));
}

TEST_CASE("classes of AWS's first SDK are named with KCL 3") {
  for (const char* name : {"DefaultAWSCredentialsProviderChain",
                           "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
                           "DefaultCredentialsProvider, com.amazonaws.auth.X"}) {
    CHECK(contains(with("AwsCredentialsProvider=" + std::string(name)), "error: "));
    CHECK_FALSE(contains(with("AWSCredentialsProvider=" + std::string(name), kcl2), "error: "));
  }
}

TEST_CASE("what the daemon's own reader refuses is an error, with its words") {
  const std::string stops = read_as(
      "warns\t\tUnable to construct any provider with name X\n"
      "stops\t\tIllegalArgumentException: No credential providers were specified.\n");
  CHECK(stops ==
        "error: the daemon does not start with this file: IllegalArgumentException: No credential "
        "providers were specified.\nIt warns: Unable to construct any provider with name X.\n");
  CHECK(read_as("warns\t\tUnsupported nested key external_id\n") ==
        "warning: the daemon warns: Unsupported nested key external_id\nIt starts without that.\n");
  CHECK(read_as("warns\t\tSome polling properties have been set, defaulting\n").empty());
  CHECK(read_as("Picked up JAVA_TOOL_OPTIONS: -Da=b\n").empty());
}

TEST_CASE("a value that the daemon reads as another one is named with it") {
  CHECK(
      read_as("reads\tmaxRecords\t0\nunset\tmaxRecords\t0\n", "maxRecords=10 # ten") ==
      "warning: maxRecords is \"10 # ten\", which the daemon reads as 0\nIt counts as not set: the "
      "default, 10000, stays.\n");
  CHECK(read_as("unset\tcleanupLeasesUponShardCompletion\tfalse\n",
                "cleanupLeasesUponShardCompletion=false") ==
        "warning: cleanupLeasesUponShardCompletion is false\nIt counts as not set: the default, "
        "true, stays.\n");
  CHECK(read_as("unset\tcallProcessRecordsEvenForEmptyRecordList\tfalse\n",
                "callProcessRecordsEvenForEmptyRecordList=false")
            .empty());
}

TEST_CASE("the reader tells whether the daemon fans out") {
  CHECK(
      contains(read_as("retrieval\t\tFANOUT\n", "retrievalMode=DEFAULT\nmaxRecords=5"), "billed"));
  CHECK(read_as("retrieval\t\tPOLLING\n", "retrievalMode=DEFAULT").empty());
  CHECK(with("retrievalMode=DEFAULT\nretryGetRecordsInSeconds=5").empty());
}

TEST_CASE("a heap that a backlog does not fit in is named with what it needs") {
  CHECK(contains(read_as("", "", 256), "warning: a heap of 256 MB has room for 1 shards"));
  CHECK(read_as("", "", 420).empty());
  CHECK(contains(read_as("", "", 419), "has room for 3 shards"));
  CHECK(read_as("", "maxRecords=1000", 256).empty());
  CHECK(read_as("", "maxLeasesForWorker=1", 256).empty());
  CHECK(contains(read_as("", "maxLeasesForWorker=2", 256), "room for 1 shards"));
  const auto with_ours = [&](std::uint64_t heap) {
    return check(sound_with("", kcl3), {look, false, kcl3, heap, {}, false}).size();
  };
  CHECK(with_ours(180) == 0);
  CHECK(with_ours(179) == 1);
  circumstances beside_another{look, false, kcl3, 259, {}, false};
  beside_another.heap_of_others = heap_of_shards(sound_with("", kcl3), beside_another);
  CHECK(contains(text_of(check(sound_with("", kcl3), beside_another)),
                 "a heap of 259 MB has room for 3 shards"));
}

TEST_CASE("a negative number is named, whatever the key, and once") {
  CHECK(contains(read_as("negative\ttaskBackoffTimeMillis\t-7\n", "taskBackoffTimeMillis=-7"),
                 "warning: taskBackoffTimeMillis is -7\nThe daemon takes a negative time"));
  const std::string once = read_as("negative\ttimeoutInSeconds\t-1\n", "timeoutInSeconds=-1");
  CHECK(contains(once, "timeoutInSeconds is -1"));
  CHECK_FALSE(contains(once, "negative"));
}

TEST_CASE(
    "a time that Java's schedules refuse, or in which a busy worker loses its leases, is named") {
  CHECK(contains(with("failoverTimeMillis=-5"), "error: failoverTimeMillis is -5"));
  CHECK(contains(with("failoverTimeMillis=77"), "error: failoverTimeMillis is 77"));
  CHECK(contains(with("failoverTimeMillis=78"), "warning: failoverTimeMillis is 78"));
  CHECK(with("failoverTimeMillis=1000").empty());
  CHECK(contains(with("leaseAssignmentIntervalMillis=51"),
                 "error: leaseAssignmentIntervalMillis is 51"));
  CHECK(with("leaseAssignmentIntervalMillis=52").empty());
}

TEST_CASE("a time of more than a day is named, whatever the key and its unit") {
  CHECK(with("parentShardPollIntervalMillis=86400000").empty());
  CHECK(contains(with("parentShardPollIntervalMillis=86400001"), "more than a day"));
  CHECK(contains(with("millisBehindLatestThresholdForReducedTps=86400001"), "more than a day"));
  CHECK(contains(with("retryGetRecordsInSeconds=86401"), "more than a day"));
  CHECK(with("retryGetRecordsInSeconds=86400").empty());
  CHECK(contains(with("fanoutConfig.retryBackoffMillis=9223372036854775807", kcl2),
                 "more than a day"));
}

TEST_CASE("a pool of fewer threads than the shards need is named") {
  const std::string hangs = "every shard hangs";
  CHECK(contains(with("maxActiveThreads=1"), hangs));
  CHECK(contains(with("maxActiveThreads=100"), hangs));  // of 99 shards
  CHECK(with("maxActiveThreads=2147483647").empty());
  CHECK(contains(with("maxActiveThreads=5\nmaxLeasesForWorker=4"), hangs));
  CHECK(with("maxActiveThreads=6\nmaxLeasesForWorker=4").empty());
  CHECK(with("maxActiveThreads=0").empty());
  CHECK(with("maxActiveThreads=-1").empty());
}

TEST_CASE("a key of newer daemons is no misspelt one, and known where the fetched one reads it") {
  const std::string line = "migrateAllEntitiesToLeaseTable=true";
  CHECK(contains(with(line), "is a key of newer daemons than the one that is fetched"));
  CHECK(read_as("knows\tmigrateAllEntitiesToLeaseTable\t\n", line).empty());
  CHECK(read_as("knows\tkeyOfTomorrow\t\n", "keyOfTomorrow=1").empty());
  CHECK(contains(with("keyOfTomorrow=1"), "is not a key of KCL 3.x"));
}

TEST_CASE("many diagnostics come in the file's order") {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "maxRecords=1\n";
  const auto found = checked(lines + sound(kcl3));
  REQUIRE(found.size() == 19'999);
  CHECK(found.front().line == 1);
  CHECK(found.back().line == 19'999);
}

TEST_CASE("the shipped logging keeps the children's stderr out of the daemon's log") {
  CHECK(
      embedded::logback.find(
          R"(<logger name="software.amazon.kinesis.multilang.DrainChildSTDERRTask" level="OFF"/>)") !=
      std::string_view::npos);
}
