// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "support/catch.hpp"
#include "support/checked_properties.hpp"

using namespace kclxx::test;

TEST_CASE("a 0 or false that counts as not set is an error", "[diagnostics]") {
  CHECK(contains(with("maxRecords=0"), "maxRecords is 0\n0 counts as not set: the default, 10000"));
  CHECK(contains(with("cleanupLeasesUponShardCompletion=false"), "the default, true, stays"));
  CHECK(contains(with("leaseAssignmentIntervalMillis=0"), "it counts as not set"));
  for (const char* line :
       {"isGracefulLeaseHandoffEnabled=false", "gracefulLeaseHandoffTimeoutMillis=0",
        "callProcessRecordsEvenForEmptyRecordList=false", "retryGetRecordsInSeconds=0",
        "millisBehindLatestThresholdForReducedTps=0"}) {
    CAPTURE(line);
    CHECK(with(line).empty());
  }
  CHECK(with("cleanupLeasesUponShardCompletion=false", kcl_version::kcl1).empty());
}

TEST_CASE("a value that is not a number is an error that names the effective value",
          "[diagnostics]") {
  for (const char* value : {"abc", "10s", "1.5", "99999999999", "10 # ten", "", "0x10"}) {
    CAPTURE(value);
    CHECK(contains(with(std::string("maxRecords=") + value),
                   "not a whole number of 32 bits\nWithout a warning, the default, 10000"));
  }
  CHECK(with("maxRecords=+7\n").empty());
  CHECK(with("failoverTimeMillis=99999999999 \n").empty());
  CHECK(contains(with("maxRecords=10 \n", kcl_version::kcl1), "logs a warning"));
  CHECK(contains(with("gracefulLeaseHandoffTimeoutMillis=x"), "reads it as 0"));
  CHECK(contains(with("maxActiveThreads=10 "), "does not start"));
  CHECK(contains(with("maxRecords=-7"), "is negative"));
  CHECK(contains(with("maxRecords=10001"), "more than 10000"));
  CHECK(contains(with("timeoutInSeconds=0"), "halts at its first message"));
  CHECK(contains(with("workerMetricsEMAAlpha=x"), "not a number above 0"));
  CHECK(with("workerMetricsEMAAlpha=0.7").empty());
}

TEST_CASE("true and false have more names in 2.x and 3.x than in 1.x", "[diagnostics]") {
  const std::string key = "callProcessRecordsEvenForEmptyRecordList=";
  for (const char* value : {"true", "TRUE", "yes", "on", "y", "1", "no", "off", "0"}) {
    CAPTURE(value);
    CHECK(with(key + value).empty());
  }
  CHECK(contains(with(key + "maybe"), "neither true nor false"));
  CHECK(contains(with(key + "true "), "neither true nor false"));
  CHECK(contains(with(key + "yes", kcl_version::kcl1), "neither true nor false"));
  CHECK(with(key + "True", kcl_version::kcl1).empty());
}

TEST_CASE("a word that is none of those allowed is an error", "[diagnostics]") {
  CHECK(contains(with("metricsLevel=FOO"), "none of NONE, SUMMARY, DETAILED\nThe daemon does not"));
  CHECK(contains(with("metricsLevel=FOO", kcl_version::kcl1), "logs a warning"));
  CHECK(contains(with("workerMetricsBillingMode=x"), "PAY_PER_REQUEST"));
  CHECK(contains(with("metricsLevel=NONE "), "\"NONE \""));
  for (const char* line : {"metricsLevel=none", "workerMetricsBillingMode=provisioned",
                           "clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1"}) {
    CAPTURE(line);
    CHECK(with(line).empty());
  }
}

TEST_CASE("a value of a megabyte is checked, and cut in the message", "[diagnostics]") {
  const std::string text(1 << 20, 'a');
  for (const std::string start : {"regionName=", "streamName=", "kinesisEndpoint=http://",
                                  "streamArn=arn:aws:kinesis:", "workerMetricsTags="}) {
    CAPTURE(start);
    const std::string found = with(start + text);
    CHECK(contains(found, "aaa...\""));
    CHECK(found.size() < 2000);
  }
}

TEST_CASE("values with a form are held to it", "[diagnostics]") {
  const auto bad = {"kinesisEndpoint=localhost:4568",
                    "dynamoDBEndpoint=",
                    "regionName=Frankfurt",
                    "streamArn=stream",
                    "staleWorkerMetricsEntryCleanupDuration=1d",
                    "staleWorkerMetricsEntryCleanupDuration=P",
                    "workerMetricsTags=a",
                    "tableName=my-table "};
  for (const char* line : bad) {
    CAPTURE(line);
    CHECK(contains(with(line), "error: "));
  }
  const auto good = {"kinesisEndpoint=http://127.0.0.1:4568",
                     "staleWorkerMetricsEntryCleanupDuration=PT36H",
                     "staleWorkerMetricsEntryCleanupDuration=p1dt2m", "workerMetricsTags=a=1,b=2",
                     "streamArn=arn:aws-cn:kinesis:eu-central-1:123456789012:stream/stream"};
  for (const char* line : good) {
    CAPTURE(line);
    CHECK(with(line).empty());
  }
}

TEST_CASE("the AWS SDK's two generations have different names for credentials", "[diagnostics]") {
  const auto old_name = checked("AwsCredentialsProvider=DefaultAWSCredentialsProviderChain");
  CHECK(contains(old_name.front().fix, "Write DefaultCredentialsProvider."));
  const auto new_name =
      checked("AWSCredentialsProvider=DefaultCredentialsProvider", kcl_version::kcl2);
  CHECK(contains(new_name.front().fix, "Write DefaultAWSCredentialsProviderChain."));
}

TEST_CASE("a credentials provider that the daemon does not find is an error with a suggestion",
          "[diagnostics]") {
  const auto fix = [](const std::string& name, kcl_version which) {
    const std::string key =
        which == kcl_version::kcl3 ? "AwsCredentialsProvider=" : "AWSCredentialsProvider=";
    for (const diagnostic& diagnostic : checked(key + name, which)) {
      if (diagnostic.line == 1) return diagnostic.fix;
    }
    return std::string();
  };
  const auto third = kcl_version::kcl3;
  const auto second = kcl_version::kcl2;
  CHECK(fix("DefaultCredentialProvider", third) == "Write DefaultCredentialsProvider.");
  CHECK(fix("profile.ProfileCredentialsProvider", third) == "Write ProfileCredentialsProvider.");
  CHECK(fix("ProfileCredentialsProvider|mine", second) ==
        "Write profile.ProfileCredentialsProvider.");
  CHECK(fix("DefaultCredentialsProvider, Nobody", third) ==
        "Name a provider of the AWS SDK, or a class with its package.");
  CHECK(fix("STSAssumeRoleSessionCredentialsProvider|arn|s", second).empty());
  CHECK(fix("STSAssumeRoleSessionCredentialsProvider|arn|s", kcl_version::kcl1) != "");
  CHECK(fix("ContainerCredentialsProvider", second).empty());
  CHECK(fix("com.example.Provider|argument", third).empty());
  CHECK(fix("DefaultCredentialsProvider , AnonymousCredentialsProvider", third).empty());
}

TEST_CASE("AT_TIMESTAMP is another key", "[diagnostics]") {
  auto text = sound.at(kcl_version::kcl3);
  text.replace(text.find("LATEST"), 6, "AT_TIMESTAMP");
  const auto found = checked(text);
  REQUIRE(found.size() == 1);
  CHECK(contains(found.front().fix, "initialPositionInStreamExtended"));
}

TEST_CASE("a start in milliseconds is far in the future", "[diagnostics]") {
  auto text = sound.at(kcl_version::kcl3);
  text.replace(text.find("initialPositionInStream=LATEST"), 30,
               "initialPositionInStreamExtended=1600000000000");
  CHECK(contains(checked(text).front().what, "looks like milliseconds"));
}

TEST_CASE("letters beyond ASCII that were written in UTF-8 are an error", "[diagnostics]") {
  CHECK(contains(with("processingLanguage=caf\xc3\xa9"), "in UTF-8"));
  CHECK(with("processingLanguage=caf\xe9").empty());
  CHECK(with("processingLanguage=caf\\u00e9").empty());
}

TEST_CASE("a limit on the daemon's threads is a warning, which names the number that is needed",
          "[diagnostics]") {
  CHECK(contains(with("maxActiveThreads=4"),
                 "warning: maxActiveThreads limits the threads to 4\n"
                 "A worker with N shards needs 2N + 1."));
  CHECK(with("maxActiveThreads=0").empty());
}

TEST_CASE("what cannot name a stream is an error, and so are quotes around a text",
          "[diagnostics]") {
  for (const char* name : {"two # the stream", "my stream", "a/b"}) {
    CAPTURE(name);
    CHECK(contains(with(std::string("streamName=") + name), "which cannot name a stream"));
  }
  CHECK(contains(with("streamName=\"my-stream\""), "streamName is in quotes"));
  CHECK(contains(with("workerId='me'"), "workerId is in quotes"));
  CHECK_FALSE(contains(with("streamName=my_Stream-1.b"), "error"));
}

TEST_CASE("a time in milliseconds that was meant in seconds is a warning", "[diagnostics]") {
  CHECK(contains(with("failoverTimeMillis=10"), "warning: failoverTimeMillis is 10, less than a"));
  CHECK(
      contains(with("shutdownGraceMillis=25"), "warning: shutdownGraceMillis is 25, less than a"));
  CHECK(with("failoverTimeMillis=1000").empty());
}

TEST_CASE("a region that AWS cannot have is a warning, a port that nobody can have an error",
          "[diagnostics]") {
  CHECK(contains(with("regionName=eu-centrl-1"), "warning: regionName is \"eu-centrl-1\""));
  for (const char* region : {"us-gov-west-1", "cn-northwest-1", "ap-southeast-4", "us-iso-east-1",
                             "mx-central-1", "eusc-de-east-1"}) {
    CAPTURE(region);
    CHECK_FALSE(contains(with(std::string("regionName=") + region), "no region"));
  }
  CHECK(contains(with("dynamoDBEndpoint=http://127.0.0.1:99999"),
                 "error: dynamoDBEndpoint has the port 99999"));
  CHECK(with("dynamoDBEndpoint=http://127.0.0.1:8000/path").empty());
}
