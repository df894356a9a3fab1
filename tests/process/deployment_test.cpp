// SPDX-License-Identifier: Apache-2.0
// The files of docs/deployment, as far as they can be tested without Docker and AWS. The test
// e2e.image builds the image.
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

namespace {

using words = std::vector<std::string>;

std::string read(const std::string& path) {
  const std::string text = read_file(KCLXX_SOURCE_DIR "/" + path);
  REQUIRE_FALSE(text.empty());
  return text;
}

std::string first_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  CAPTURE(pattern);
  REQUIRE(std::regex_search(text, match, std::regex(pattern)));
  return match[1];
}

words words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string replaced(std::string text, const std::string& source, const std::string& target) {
  for (auto at = text.find(source); at != std::string::npos;
       at = text.find(source, at + target.size())) {
    text.replace(at, source.size(), target);
  }
  return text;
}

/// properties/aws.properties with a program that is there, in a directory as the files have it.
void furnish(const sandbox& box) {
  box.program("bin/java", "for a; do echo \"$a\"; done\n");
  box.program("my_processor", "");
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  box.write("my.properties", read("properties/aws.properties"));
}

/// Runs a command of a deployment file in the sandbox, in place of /opt/my-consumer.
forked_result run_as_deployed(const sandbox& box, const std::string& program, words command) {
  REQUIRE(command.size() > 1);
  CHECK(command.front() == program);
  command.erase(command.begin());
  for (std::string& word : command) word = replaced(word, "/opt/my-consumer/", (box / "").string());
  return box.kclxx(command);
}

void starts_the_daemon(const forked_result& result) {
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("\nsoftware.amazon.kinesis.multilang.MultiLangDaemon\n") !=
        std::string::npos);
  CHECK(result.out.find("\n-Xmx256m\n") != std::string::npos);
}

/// CTest then reports the test as skipped.
[[noreturn]] void without_systemd() {
  std::cout << "systemd-analyze is not there (Debian: systemd)" << std::endl;
  std::_Exit(77);
}

int grace_seconds() {
  const auto grace =
      first_match(read("properties/aws.properties"), "\nshutdownGraceMillis = (\\d+)");
  return std::stoi(grace) / 1000;
}

}  // namespace

TEST_CASE("the commands of the systemd unit check and start the daemon", "[deployment]") {
  const std::string unit = read("docs/deployment/kclxx.service");
  const sandbox box;
  furnish(box);
  const std::string program = "/usr/local/bin/kclxx";
  const auto check =
      run_as_deployed(box, program, words_of(first_match(unit, "\nExecStartPre=(.*)")));
  CHECK(check.out == "0 errors, 0 warnings\n");
  CHECK(check.status == 0);
  starts_the_daemon(run_as_deployed(box, program, words_of(first_match(unit, "\nExecStart=(.*)"))));
  CHECK(std::stoi(first_match(unit, "\nTimeoutStopSec=(\\d+)")) > grace_seconds());
}

TEST_CASE("systemd accepts the unit", "[deployment]") {
  const sandbox box;
  box.write("kclxx.service",
            replaced(read("docs/deployment/kclxx.service"), "/usr/local/bin/kclxx", KCLXX_TOOL));
  const auto verified = box.start({"systemd-analyze", "verify", "./kclxx.service"}).result();
  if (verified.status == 98) without_systemd();
  CHECK(verified.out + verified.err == "");
  CHECK(verified.status == 0);
}

TEST_CASE("systemd finds little exposure in the unit, as the document shows", "[deployment]") {
  const auto rated =
      sandbox()
          .start({"systemd-analyze", "--no-pager", "security", "--offline=yes", "--threshold=11",
                  KCLXX_SOURCE_DIR "/docs/deployment/kclxx.service"})
          .result();
  if (rated.status == 98) without_systemd();
  CAPTURE(rated.out, rated.err);
  CHECK(rated.status == 0);
  const std::string score =
      first_match(rated.out, "Overall exposure level for kclxx.service: ([0-9.]+)");
  CHECK(read("docs/deployment.md").find("`kclxx.service` at " + score) != std::string::npos);
}

TEST_CASE("the image's entry point starts the daemon without a shell", "[deployment]") {
  const std::string file = read("docs/deployment/Dockerfile");
  const sandbox box;
  furnish(box);
  const auto entry = nlohmann::json::parse(first_match(file, "\nENTRYPOINT (.*)"));
  starts_the_daemon(run_as_deployed(box, "kclxx", entry.get<words>()));
  const auto check =
      run_as_deployed(box, "kclxx", words_of(first_match(file, "\nRUN (kclxx daemon check.*)")));
  CHECK(check.status == 0);
}

TEST_CASE("the image's user is a number above 0 that the image has", "[deployment]") {
  const std::string file = read("docs/deployment/Dockerfile");
  const std::string user = first_match(file, "\nUSER (.*)");
  CHECK(std::regex_match(user, std::regex("[1-9][0-9]*")));
  CHECK(first_match(file, "useradd .*--uid (\\d+)") == user);
  CHECK(first_match(read("docs/deployment/kubernetes.yaml"), "runAsUser: (\\d+)") == user);
}

TEST_CASE("Kubernetes waits longer than the daemon", "[deployment]") {
  const std::string file = read("docs/deployment/kubernetes.yaml");
  CHECK(std::stoi(first_match(file, "terminationGracePeriodSeconds: (\\d+)")) > grace_seconds());
}

TEST_CASE("the properties that Kubernetes sets are the daemon's", "[deployment]") {
  const std::string file = read("docs/deployment/kubernetes.yaml");
  const std::regex variable("- \\{?name: (KCLXX_PROPERTY_\\w+)(, value: ([^}]*))?");
  words environment;
  for (std::sregex_iterator at(file.begin(), file.end(), variable), end; at != end; ++at) {
    const std::string value = (*at)[3].matched ? (*at)[3].str() : "a-pod-s-name";
    environment.push_back((*at)[1].str() + "=" + value);
  }
  CHECK(environment.size() == 2);
  const sandbox box;
  furnish(box);
  const auto check = box.kclxx({"daemon", "check", (box / "my.properties").string()}, environment);
  CAPTURE(check.err);
  CHECK(check.out == "0 errors, 0 warnings\n");
  CHECK(check.status == 0);
}

TEST_CASE(
    "the policy allows the KCL's calls, one by one, on the stream and the application's tables",
    "[deployment]") {
  const auto policy = nlohmann::json::parse(read("docs/deployment/iam-policy.json"));
  CHECK(policy.at("Version") == "2012-10-17");
  const auto list = [](const nlohmann::json& one_or_more) {
    return one_or_more.is_array() ? one_or_more.get<std::set<std::string>>()
                                  : std::set<std::string>{one_or_more.get<std::string>()};
  };
  // What each action is allowed on.
  std::map<std::string, std::set<std::string>> allowed;
  for (const auto& statement : policy.at("Statement")) {
    CHECK(statement.at("Effect") == "Allow");
    for (const std::string& action : list(statement.at("Action"))) {
      CAPTURE(action);
      CHECK(allowed.count(action) == 0);
      allowed[action] = list(statement.at("Resource"));
    }
    if (list(statement.at("Resource")).count("*") > 0) {
      CHECK(statement.at("Condition").at("StringEquals").at("cloudwatch:namespace") ==
            "APPLICATION");
    }
  }
  const std::string stream = "arn:aws:kinesis:REGION:ACCOUNT:stream/STREAM";
  const std::string table = "arn:aws:dynamodb:REGION:ACCOUNT:table/APPLICATION";
  const std::set<std::string> streams{stream};
  const std::set<std::string> consumers{stream, stream + "/consumer/*"};
  const std::set<std::string> tables{table, table + "/index/*", table + "-CoordinatorState",
                                     table + "-WorkerMetricStats"};
  const std::map<std::string, std::set<std::string>> expected{
      {"kinesis:DescribeStreamSummary", streams},
      {"kinesis:GetRecords", streams},
      {"kinesis:GetShardIterator", streams},
      {"kinesis:ListShards", streams},
      {"kinesis:DescribeStreamConsumer", consumers},
      {"kinesis:RegisterStreamConsumer", consumers},
      {"kinesis:SubscribeToShard", consumers},
      {"dynamodb:CreateTable", tables},
      {"dynamodb:DeleteItem", tables},
      {"dynamodb:DescribeTable", tables},
      {"dynamodb:GetItem", tables},
      {"dynamodb:PutItem", tables},
      {"dynamodb:Query", tables},
      {"dynamodb:Scan", tables},
      {"dynamodb:UpdateContinuousBackups", tables},
      {"dynamodb:UpdateItem", tables},
      {"dynamodb:UpdateTable", tables},
      {"cloudwatch:PutMetricData", {"*"}}};
  CHECK(allowed == expected);
}
