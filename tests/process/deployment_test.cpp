// SPDX-License-Identifier: Apache-2.0
// The files of docs/deployment, as far as they can be tried without systemd, Docker and AWS.
#include <fstream>
#include <iterator>
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
  std::ifstream in(std::string(KCLXX_SOURCE_DIR "/") + path);
  REQUIRE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
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

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
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

/// Runs a command of a deployment file in the sandbox, which stands for /opt/my-consumer.
forked_result run_as_deployed(const sandbox& box, const std::string& program, words command) {
  REQUIRE(command.size() > 1);
  CHECK(command.front() == program);
  command.erase(command.begin());
  for (std::string& one : command) one = replaced(one, "/opt/my-consumer/", (box / "").string());
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
  const auto verified = in_forked_copy([&] {
    ::execlp("systemd-analyze", "systemd-analyze", "verify", (box / "kclxx.service").c_str(),
             nullptr);
    return 98;
  });
  if (verified.status == 98) {
    WARN("systemd-analyze is not there: the unit was not checked");
    return;
  }
  CHECK(verified.out + verified.err == "");
  CHECK(verified.status == 0);
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

TEST_CASE("each line of the Dockerfile is an instruction, a continuation or a comment",
          "[deployment]") {
  std::istringstream lines(read("docs/deployment/Dockerfile"));
  const std::set<std::string> known{"FROM", "RUN",        "COPY",      "WORKDIR",
                                    "USER", "STOPSIGNAL", "ENTRYPOINT"};
  bool is_continued = false;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    if (!is_continued && !line.empty() && line.front() != '#') {
      CHECK(known.count(line.substr(0, line.find(' '))) == 1);
    }
    is_continued = !line.empty() && line.back() == '\\';
  }
  CHECK_FALSE(is_continued);
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

TEST_CASE("the policy allows single actions on the stream and the application's tables",
          "[deployment]") {
  const auto policy = nlohmann::json::parse(read("docs/deployment/iam-policy.json"));
  CHECK(policy.at("Version") == "2012-10-17");
  std::set<std::string> actions;
  for (const auto& statement : policy.at("Statement")) {
    CHECK(statement.at("Effect") == "Allow");
    const auto& action = statement.at("Action");
    for (const auto& one : action.is_array() ? action : nlohmann::json::array({action})) {
      CHECK(std::regex_match(one.get<std::string>(),
                             std::regex("(kinesis|dynamodb|cloudwatch):[A-Z][A-Za-z]+")));
      CHECK(actions.insert(one).second);
    }
    const auto& resource = statement.at("Resource");
    for (const auto& one : resource.is_array() ? resource : nlohmann::json::array({resource})) {
      const std::regex form(
          "arn:aws:(kinesis:REGION:ACCOUNT:stream/STREAM(/consumer/\\*)?|"
          "dynamodb:REGION:ACCOUNT:table/APPLICATION(/index/\\*|-CoordinatorState|"
          "-WorkerMetricStats)?)");
      const bool is_everything = one == "*" && statement.contains("Condition");
      CHECK((is_everything || std::regex_match(one.get<std::string>(), form)));
    }
  }
}
