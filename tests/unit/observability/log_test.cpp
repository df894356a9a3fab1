// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/log.hpp>

#include "observability/log_writer.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"

namespace kclxx::observability {

namespace {

using test::temporary_folder;

const log_entry warning{log_level::warning, "shardId-3", "it \"failed\"",
                        sequence_position("101", 2)};

}  // namespace

TEST_CASE("a line of text names shard, level and message", "[observability][log]") {
  CHECK(text_line(warning) == "kclxx shardId-3 warning: it \"failed\"\n");
  CHECK(text_line({log_level::info, "", "hello"}) == "kclxx info: hello\n");
}

TEST_CASE("a line of JSON has time, level, shard, position and message", "[observability][log]") {
  const date when(std::chrono::milliseconds(1'600'000'000'007));
  CHECK(json_line(warning, when) ==
        R"({"time":"2020-09-13T12:26:40.007Z","level":"warning","shard":"shardId-3",)"
        R"("position":"101/2","message":"it \"failed\""})"
        "\n");
  CHECK(json_line({log_level::error, "", "no shard"}, when) ==
        R"({"time":"2020-09-13T12:26:40.007Z","level":"error","message":"no shard"})"
        "\n");
}

TEST_CASE("no line has anything that a terminal could obey, whatever the shard and the message are",
          "[observability][log][P9]") {
  const std::string dangerous = test::obeyed_text();
  const log_entry entry{log_level::error, dangerous, dangerous};
  const std::string text = text_line(entry);
  const std::string json = json_line(entry, date());
  for (const std::string& line : {text, json}) {
    CHECK_FALSE(test::has_obeyed(line));
    CHECK_FALSE(test::has_raw_byte(line));
  }
  CHECK(nlohmann::json::parse(json)["shard"].get<std::string>().ends_with("end"));
  CHECK(text_line({log_level::error, std::string(1'000'000, 's'), std::string(1'000'000, 'm')})
            .size() < 10'000);
}

TEST_CASE("KCLXX_LOG sets level and form, in any order", "[observability][log]") {
  log_options options;
  CHECK(read_log_variable("json,warning", options).empty());
  CHECK(options.level == log_level::warning);
  CHECK(options.json);
  CHECK(read_log_variable("error", options).empty());
  CHECK(options.level == log_level::error);
  CHECK(options.json);
  CHECK(read_log_variable("", options).empty());
  CHECK(read_log_variable("chatty", options) ==
        "KCLXX_LOG: 'chatty' is neither a level (info, warning, error) nor a form (text, json)");
}

TEST_CASE("a log file is appended to, with dates, and found again after a rotation",
          "[observability][log]") {
  const temporary_folder folder;
  const auto file = folder.path() / "kclxx.log";
  const log_output log({.level = log_level::warning, .file = file.string()}, 2);
  log.write(warning);
  log.write({log_level::info, "shardId-3", "below the level"});
  std::filesystem::rename(file, folder.path() / "kclxx.log.1");
  log.write({log_level::error, "shardId-3", "after the rotation"});
  const std::string first = test::read_file(folder.path() / "kclxx.log.1");
  CHECK(first.substr(first.find(' ')) == " kclxx shardId-3 warning: it \"failed\"\n");
  CHECK(first.substr(0, 2) == "20");
  const std::string second = test::read_file(file);
  CHECK(second.substr(second.find(' ')) == " kclxx shardId-3 error: after the rotation\n");
}

TEST_CASE("a log file that cannot be written is named once, and the lines go to stderr",
          "[observability][log]") {
  test::open_pipe pipe;
  const log_output log({.file = "/nowhere/kclxx.log"}, pipe.write_end());
  log.write({log_level::error, "shardId-3", "one"});
  log.write({log_level::error, "shardId-3", "two"});
  pipe.close_write_end();
  CHECK(test::read_all(pipe.read_end()) ==
        "kclxx shardId-3 warning: the log file /nowhere/kclxx.log cannot be written, so lines go "
        "to stderr: No such file or directory (logged once)\n"
        "kclxx shardId-3 error: one\n"
        "kclxx shardId-3 error: two\n");
}

TEST_CASE("where others can write, the log neither waits for a FIFO nor follows a link",
          "[observability][log]") {
  const temporary_folder folder;
  const auto file = folder.path() / "kclxx.log";
  const auto theirs = folder.path() / "theirs";
  const std::string reason = GENERATE("a FIFO", "a link", "a folder");
  if (reason == "a FIFO") REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  if (reason == "a link") std::filesystem::create_symlink(theirs, file);
  if (reason == "a folder") std::filesystem::create_directory(file);
  test::open_pipe pipe;
  const log_output log({.file = file.string()}, pipe.write_end());
  log.write({log_level::error, "shardId-3", "one"});
  pipe.close_write_end();
  const std::string lines = test::read_all(pipe.read_end());
  CHECK(lines.find(" cannot be written, so lines go to stderr: ") != std::string::npos);
  CHECK(lines.ends_with("\nkclxx shardId-3 error: one\n"));
  CHECK_FALSE(std::filesystem::exists(theirs));
}

TEST_CASE("a log file is its owner's alone", "[observability][log]") {
  const temporary_folder folder;
  const auto file = folder.path() / "kclxx.log";
  const auto before = ::umask(0);
  log_output({.file = file.string()}, 2).write({log_level::error, "shardId-3", "one"});
  ::umask(before);
  using std::filesystem::perms;
  CHECK(std::filesystem::status(file).permissions() == (perms::owner_read | perms::owner_write));
}

TEST_CASE("the environment takes precedence over the options of the log", "[observability][log]") {
  const detail::environment variables = [](const std::string& name) -> std::optional<std::string> {
    return name == "KCLXX_LOG" ? "error,json" : "/a/file";
  };
  std::vector<std::string> problems;
  const log_options options = with_environment({.level = log_level::info}, variables, problems);
  CHECK(options.level == log_level::error);
  CHECK(options.json);
  CHECK(options.file == "/a/file");
  CHECK(problems.empty());
}

}  // namespace kclxx::observability
