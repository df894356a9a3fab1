// SPDX-License-Identifier: Apache-2.0
// kclxx-share: one process of test_child for several shards.
#include <memory>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "process/shared_machine.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

using namespace kclxx::test;

TEST_CASE("all shards of a daemon are served by one process, each with its own names",
          "[sharing]") {
  const machine box;
  const launched first = box.initialized("orders");
  const launched second = box.initialized("payments");
  CHECK(box.process_of("orders") == box.process_of("payments"));
  CHECK(box.started().size() == 1);
  CHECK(box.sockets() == 1);
  must_be_served(*first);
  must_be_served(*second);
  CHECK(first->rest().find_first_not_of('\n') == std::string::npos);
}

TEST_CASE("settings come from each launcher's environment", "[sharing]") {
  const machine box;
  fs::create_directory(box / "metrics");
  const words plain;
  const words special{"KCLXX_LOG=json", "KCLXX_METRICS_DIR=" + (box / "metrics").string()};
  const bool is_first_special = GENERATE(false, true);
  const words command{child, "manual"};
  const launched first = box.initialized("a", command, is_first_special ? special : plain);
  const launched second = box.initialized("b", command, is_first_special ? plain : special);
  for (const launched* launcher : {&first, &second}) {
    (*launcher)->send(R"({"action":"ping"})");
    (*launcher)->expect_status("ping");
  }
  const std::string stream = is_first_special ? "a" : "b";
  scripted_daemon& with = is_first_special ? *first : *second;
  scripted_daemon& without = is_first_special ? *second : *first;
  CHECK(contains(with.await_stderr("the daemon sent an action"), R"("level":"warning")"));
  CHECK_FALSE(contains(without.await_stderr("the daemon sent an action"), R"("level")"));
  CHECK(eventually([&] {
    return fs::exists(box / ("metrics/kclxx.unknown." + stream + ".shardId-000000000007.prom"));
  }));
}

TEST_CASE("log lines lead to the shard's stderr, prints to that of the oldest shard", "[sharing]") {
  const machine box;
  const launched first = box.initialized("a");
  const launched second = box.initialized("b");
  CHECK(contains(first->await_stderr("of b"), "of a"));
  second->send(R"({"action":"ping"})");
  second->expect_status("ping");
  second->await_stderr("the daemon sent an action");
  CHECK_FALSE(contains(first->stderr_so_far(), "the daemon sent an action"));

  CHECK(first->end() == 0);
  first->await_end_of_stderr();
  second->process({"cout"});
  second->await_stderr("partial text without a newline");

  SECTION("without a shard prints are lost, and the next shard's are seen") {
    CHECK(second->end() == 0);
    second->await_end_of_stderr();
    const launched third = box.initialized("c");
    third->await_stderr("of c");
  }
}

TEST_CASE("the shards share one log function, and copy it no more", "[sharing]") {
  const machine box;
  const words command{child, "noted_log"};
  for (const char* shard : {"a", "b"}) {
    const launched launcher = box.initialized(shard, command);
    launcher->send(R"({"action":"ping"})");
    launcher->expect_status("ping");
    CHECK(launcher->end() == 0);
    launcher->await_end_of_stderr();
  }
  const launched last = box.initialized("c", command);
  const std::string journal = box.journal();
  CHECK(contains(journal, "log function called"));
  CHECK_FALSE(contains(journal, "log function copied"));
  CHECK_FALSE(contains(journal, "log function destroyed"));
}

TEST_CASE("the end of the first shard is not that of the others, though main ends with its parent",
          "[sharing]") {
  const machine box;
  const words program{child, "manual", "ends_with_parent"};
  const launched first = box.initialized("a", program);
  const launched second = box.initialized("b", program);
  REQUIRE(box.started().size() == 1);
  must_be_served(*first);
  must_be_served(*second);
}

TEST_CASE("SIGTERM and its like end neither launcher nor resident", "[sharing][P32]") {
  const machine box;
  const launched first = box.initialized("a");
  // Nor is a signal to the launcher's group meant for all shards, whatever it does.
  CHECK(::getpgid(box.process_of("a")) == box.process_of("a"));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) {
    first->signal_group(signal);
    ::kill(box.process_of("a"), signal);
  }
  first->shutdown_requested();
  first->expect_status("shutdownRequested");
  must_be_served(*box.initialized("b"));
  CHECK(first->end() == 0);
}

TEST_CASE("the resident ends with its daemon, and leaves no socket", "[sharing]") {
  const machine box;
  const bool has_shards = GENERATE(true, false);
  const open_pipe ready;
  const pid_t daemon = ::fork();
  REQUIRE(daemon != -1);
  if (daemon == 0) {
    launched first = box.start("a");
    start(*first);
    first->records({"wait for stop"});
    launched second = box.start("b");
    start(*second);
    if (!has_shards) {
      first->close_input();
      second->close_input();
      first->wait_exit();
      second->wait_exit();
    }
    if (::write(ready.write_end(), "", 1) == -1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready.read_end(), &byte, 1) == 1);
  REQUIRE(box.started().size() == 1);
  const pid_t resident = box.started().front();
  CHECK(is_running(resident));
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  CHECK(eventually([&] { return !is_running(resident); }));
  CHECK(box.sockets() == 0);
}

TEST_CASE(
    "another daemon, program, argument, variable or working directory has a resident of its own",
    "[sharing]") {
  const machine box;
  const launched first = box.initialized("a");
  launched second;
  SECTION("argument") { second = box.initialized("b", {child, "manual", "at_once"}); }
  SECTION("variable") { second = box.initialized("b", {child, "manual"}, {"LANGUAGE=tlh"}); }
  SECTION("program") {
    fs::copy_file(child, box / "copy");
    second = box.initialized("b", {(box / "copy").string(), "manual"});
  }
  SECTION("working directory") {
    fs::current_path(box / "");
    second = box.initialized("b");
  }
  SECTION("daemon") {
    // The shell starts the launcher and waits for it.
    words command{"/bin/sh", "-c", "\"$0\" \"$@\"; exit $?", KCLXX_SHARE, child, "manual"};
    second = std::make_unique<scripted_daemon>(
        command, scripted_daemon::start_options{"", box.environment_of("b")});
    start(*second);
  }
  CHECK(box.process_of("a") != box.process_of("b"));
  must_be_served(*second);
  must_be_served(*first);
}

TEST_CASE("a program that is replaced on disk has a new resident, and the old one continues",
          "[sharing]") {
  const machine box;
  const std::string program = (box / "program").string();
  fs::copy_file(child, program);
  const launched first = box.initialized("a", {program, "manual"});
  fs::copy_file(child, box / "new");
  fs::rename(box / "new", program);
  const launched second = box.initialized("b", {program, "manual"});
  const launched third = box.initialized("c", {program, "manual"});
  CHECK(box.process_of("a") != box.process_of("b"));
  CHECK(box.process_of("c") == box.process_of("b"));
  must_be_served(*first);
  must_be_served(*second);
}
