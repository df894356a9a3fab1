// SPDX-License-Identifier: Apache-2.0
#include "tool/command.hpp"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"
#include "tool/command_error.hpp"

using namespace kclxx::tool;

namespace {

/// Keeps what std::cout and std::cerr get while it exists.
class captured_output {
 public:
  captured_output() : out_(std::cout.rdbuf(text.rdbuf())), err_(std::cerr.rdbuf(text.rdbuf())) {}
  ~captured_output() {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(err_);
  }
  captured_output(const captured_output&) = delete;
  captured_output& operator=(const captured_output&) = delete;

  std::ostringstream text;

 private:
  std::streambuf* out_;
  std::streambuf* err_;
};

struct result {
  int status;
  std::string output;
  std::vector<std::string> child;
  int number;
};

/// A tool with the commands "start", which takes a child, "count" and "quote", which do not, and
/// "fill", which wants an option.
result run_tool(const std::vector<const char*>& arguments) {
  CLI::App app("A tool.", "kclxx");
  app.require_subcommand(1);
  invocation run;
  int number = 0;
  CLI::App& start =
      add_command(app, {"start", "Starts.", "kclxx start -- ./child"}, child_use::required, run);
  start.add_option("--number", number, "A number");
  start.callback([&] { run.status = 42; });
  CLI::App& count = add_command(app, {"count", "Counts.", "kclxx count"}, child_use::none, run);
  count.callback([] { throw command_error(command_status::bad_transcript, "file:3: is bad"); });
  add_command(app, {"quote", "Quotes.", "kclxx quote"}, child_use::none, run).callback([] {
    std::cerr << "warning: " << kclxx::test::obeyed_text() << std::endl;
    throw command_error(command_status::bad_transcript,
                        kclxx::test::obeyed_text() + std::string(1'000'000, 'x'));
  });
  std::string target;
  add_command(app, {"fill", "Fills.", "kclxx fill --into x"}, child_use::none, run)
      .add_option("--into", target, "A file")
      ->required();
  std::vector<const char*> words{"kclxx"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const captured_output captured;
  const int status = run_command_line(app, run, static_cast<int>(words.size()), words.data());
  return {status, captured.text.str(), run.child, number};
}

}  // namespace

TEST_CASE("the words after -- belong to the child, and are not changed", "[tool]") {
  const result run = run_tool(
      {"start", "--number", "3", "--", "./child", "--number", "4", "--", "--help", "", "a b"});
  CHECK(run.status == 42);
  CHECK(run.output.empty());
  CHECK(run.number == 3);
  CHECK(run.child ==
        std::vector<std::string>{"./child", "--number", "4", "--", "--help", "", "a b"});
}

TEST_CASE("a failure is one line on stderr that names the command", "[tool]") {
  const result run = run_tool({"count"});
  CHECK(run.status == 4);
  CHECK(run.output == "kclxx count: file:3: is bad\n");
}

TEST_CASE("nothing on stderr can be obeyed by a terminal, and an error has a limited length",
          "[tool]") {
  std::string output = run_tool({"quote"}).output;
  CHECK(output.size() < 20'000);
  CHECK(output.find("kclxx quote: begin") != std::string::npos);
  CHECK_FALSE(kclxx::test::has_raw_byte(output));
  std::erase(output, '\n');
  CHECK_FALSE(kclxx::test::has_obeyed(output));
}

TEST_CASE("a bad command line is status 2 and one line", "[tool]") {
  const auto refused = [](const std::vector<const char*>& arguments, const std::string& beginning) {
    const result run = run_tool(arguments);
    CAPTURE(run.output);
    CHECK(run.status == 2);
    CHECK(run.output.starts_with(beginning));
    CHECK(run.output.find('\n') == run.output.size() - 1);
  };
  refused({}, "kclxx: A subcommand is required");
  refused({"stat"}, "kclxx: 'stat' was not expected");
  refused({"--bogus"}, "kclxx: '--bogus' was not expected");
  refused({"start"}, "kclxx start: the program to start is missing; it follows --");
  refused({"start", "--"}, "kclxx start: the program to start is missing");
  refused({"fill"}, "kclxx fill: --into is required");
  refused({"fill", "--inot", "x"}, "kclxx fill: '--inot' was not expected");
  refused({"start", "--number", "x", "--", "a"}, "kclxx start: ");
  refused({"start", "--unknown", "--", "a"}, "kclxx start: ");
  refused({"count", "--", "a"}, "kclxx count: it starts no program: remove the --");
}
