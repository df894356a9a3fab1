// SPDX-License-Identifier: Apache-2.0
// The systemd unit of docs/host/deployment. The test e2e.image builds the image.
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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
  // Nothing is said but which classes run: the sandbox has no compiled ones.
  CHECK(result.err.find("kclxx daemon run: only AWS's classes run:") == 0);
  CHECK(result.out.find("\nsoftware.amazon.kinesis.multilang.MultiLangDaemon\n") !=
        std::string::npos);
  CHECK(result.out.find("\n-Xmx512m\n") != std::string::npos);
}

/// CTest then reports the test as skipped.
[[noreturn]] void without_systemd() {
  std::cout << "systemd-analyze is not there (Debian: systemd)" << std::endl;
  std::_Exit(77);
}

}  // namespace

TEST_CASE("the commands of the systemd unit check and start the daemon", "[deployment]") {
  const std::string unit = read("docs/host/deployment/kclxx.service");
  const sandbox box;
  furnish(box);
  const std::string program = "/usr/local/bin/kclxx";
  const auto check =
      run_as_deployed(box, program, words_of(first_match(unit, "\nExecStartPre=(.*)")));
  CHECK(check.out == "0 errors, 0 warnings\n");
  CHECK(check.status == 0);
  starts_the_daemon(run_as_deployed(box, program, words_of(first_match(unit, "\nExecStart=(.*)"))));
}

TEST_CASE("systemd accepts the unit", "[deployment]") {
  const sandbox box;
  box.write("kclxx.service", replaced(read("docs/host/deployment/kclxx.service"),
                                      "/usr/local/bin/kclxx", KCLXX_TOOL));
  const auto verified = box.start({"systemd-analyze", "verify", "./kclxx.service"}).result();
  if (verified.status == 98) without_systemd();
  CHECK(verified.out + verified.err == "");
  CHECK(verified.status == 0);
}
