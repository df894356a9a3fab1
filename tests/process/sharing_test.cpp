// SPDX-License-Identifier: Apache-2.0
// kclxx-share: one process of test_child for several shards.
#include <fstream>
#include <memory>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "process/shared_machine.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

using namespace kclxx::test;

TEST_CASE("all shards of a daemon are served by one process, each with its own names",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("orders");
  const launched second = host.initialized("payments");
  CHECK(host.process_of("orders") == host.process_of("payments"));
  CHECK(host.started().size() == 1);
  CHECK(host.sockets() == 1);
  must_be_served(*first);
  must_be_served(*second);
  CHECK(first->rest().find_first_not_of('\n') == std::string::npos);
}

TEST_CASE("settings come from each launcher's environment", "[sharing]") {
  const machine host;
  fs::create_directory(host / "metrics");
  const words plain;
  const words special{"KCLXX_LOG=json", "KCLXX_METRICS_DIR=" + (host / "metrics").string()};
  const bool is_first_special = GENERATE(false, true);
  const words command{child, "manual"};
  const launched first = host.initialized("a", command, is_first_special ? special : plain);
  const launched second = host.initialized("b", command, is_first_special ? plain : special);
  for (const launched* one : {&first, &second}) {
    (*one)->send(R"({"action":"ping"})");
    (*one)->expect_status("ping");
  }
  scripted_daemon& with = is_first_special ? *first : *second;
  scripted_daemon& without = is_first_special ? *second : *first;
  CHECK(contains(with.await_stderr("the daemon sent an action"), R"("level":"warning")"));
  CHECK_FALSE(contains(without.await_stderr("the daemon sent an action"), R"("level")"));
  CHECK(eventually(
      [&] { return fs::exists(host / "metrics/kclxx.unknown.shardId-000000000007.prom"); }));
}

TEST_CASE("64 launchers at once start one resident", "[sharing]") {
  const machine host;
  std::vector<launched> all;
  for (int i = 0; i < 64; ++i) all.push_back(host.start("stream-" + std::to_string(i)));
  for (const launched& one : all) start(*one);
  CHECK(host.started().size() == 1);
  for (const launched& one : all) must_be_served(*one);
}

TEST_CASE("callbacks of different shards run at the same time", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  first->records({"meet"});
  second->records({"meet"});
  first->expect_status("processRecords");
  second->expect_status("processRecords");
}

TEST_CASE("log lines lead to the shard's stderr, prints to that of the oldest shard", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
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
    const launched third = host.initialized("c");
    third->await_stderr("of c");
  }
}

TEST_CASE("the shards share one log function, and copy it no more", "[sharing]") {
  const machine host;
  const words command{child, "noted_log"};
  for (const char* shard : {"a", "b"}) {
    const launched one = host.initialized(shard, command);
    one->send(R"({"action":"ping"})");
    one->expect_status("ping");
    CHECK(one->end() == 0);
    one->await_end_of_stderr();
  }
  const launched last = host.initialized("c", command);
  const std::string journal = host.journal();
  CHECK(contains(journal, "log function called"));
  CHECK_FALSE(contains(journal, "log function copied"));
  CHECK_FALSE(contains(journal, "log function destroyed"));
}

#ifdef KCLXX_SHARED_CACHE
TEST_CASE("what main loads before run is there for all shards, and loaded once", "[sharing]") {
  const machine host;
  std::ofstream(host / "table") << "key=value\n";
  const words command{KCLXX_SHARED_CACHE, (host / "table").string(), (host / "output").string()};
  const launched first = host.initialized("a", command);
  fs::remove(host / "table");
  const launched second = host.initialized("b", command);
  for (const launched* one : {&first, &second}) {
    (*one)->records({"text"}, 5);
    (*one)->expect_checkpoint("5");
    (*one)->expect_status("processRecords");
  }
  const std::string line = "shardId-000000000007 key value text\n";
  CHECK(read_file(host / "output") == line + line);
}
#endif

TEST_CASE("a callback that throws ends its shard's session and no other", "[sharing][P53]") {
  const machine host;
  const words command{child, "manual", "at_once"};
  const launched first = host.initialized("a", command);
  const launched second = host.initialized("b", command);
  first->records({"throw"});
  CHECK(first->wait_exit() == 10);
  CHECK(contains(first->stderr_so_far(), "process_records (record 1/0) failed: as told"));
  first->await_end_of_stderr();
  // What the daemon's shutdown hook does with the others.
  second->records({"async"}, 5);
  second->expect_checkpoint("5");
  second->expect_status("processRecords");
  second->answer();
  second->shutdown_requested();
  second->expect_status("shutdownRequested");
  CHECK(second->end() == 0);
}

TEST_CASE("a stuck callback ends its shard's session after the grace time, and no other",
          "[sharing][P57]") {
  const machine host;
  const words command{child, "manual", "short_grace"};
  const launched first = host.initialized("a", command);
  const launched second = host.initialized("b", command);
  first->records({"sleep"});
  CHECK(first->end() == 13);
  CHECK(contains(first->stderr_so_far(), "did not return within the grace time"));
  first->await_end_of_stderr();
  must_be_served(*second);
  const launched third = host.initialized("c", command);
  CHECK(host.process_of("c") == host.process_of("a"));
}

TEST_CASE("a callback that returns after its shard's end leaves the other shards alone",
          "[sharing][P57]") {
  const machine host;
  const words command{child, "manual", "short_grace"};
  const launched first = host.initialized("a", command);
  const footprint before(host.process_of("a"));
  const launched second = host.initialized("b", command);
  second->records({"return late"});
  CHECK(second->end() == 13);
  // Its descriptors have the numbers of those that were closed.
  const launched third = host.initialized("c", command);
  std::ofstream(host / "late") << "";
  CHECK(eventually([&] { return contains(host.journal(), " returned"); }));
  must_be_served(*third);
  must_be_served(*host.initialized("d", command));
  before.must_come_back();
  must_be_served(*first);
}

TEST_CASE("a launcher that is killed ends its shard's session as the end of the input does",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const footprint before(host.process_of("a"));
  const launched second = host.initialized("b");
  SECTION("in a callback") {
    second->records({"wait for stop"});
    REQUIRE(eventually([&] { return contains(host.journal(), " waits"); }));
    second->kill();
    CHECK(eventually([&] { return contains(host.journal(), " stopped"); }));
  }
  SECTION("while idle") { second->kill(); }
  SECTION("in the middle of a line") {
    second->send_raw(R"({"action":"processRec)");
    second->kill();
  }
  second->await_end_of_stderr();
  before.must_come_back();
  must_be_served(*first);
}

TEST_CASE("the end of the first shard is not that of the others, though main ends with its parent",
          "[sharing]") {
  const machine host;
  const words program{child, "manual", "ends_with_parent"};
  const launched first = host.initialized("a", program);
  const launched second = host.initialized("b", program);
  REQUIRE(host.started().size() == 1);
  must_be_served(*first);
  must_be_served(*second);
}

TEST_CASE("when the resident dies its launchers leave with a status of their own",
          "[sharing][P59]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  const pid_t resident = host.process_of("a");
  SECTION("by kill -9") { ::kill(resident, SIGKILL); }
  SECTION("by what a callback does") { first->records({"abort"}); }
  CHECK(first->wait_exit() == resident_gone);
  CHECK(second->wait_exit() == resident_gone);
  CHECK(host.sockets() == 0);
  const launched third = host.initialized("c");
  CHECK(host.process_of("c") != resident);
  must_be_served(*third);
}

TEST_CASE("SIGTERM and its like end neither launcher nor resident", "[sharing][P32]") {
  const machine host;
  const launched first = host.initialized("a");
  // Nor is a signal to the launcher's group meant for all shards, whatever it does.
  CHECK(::getpgid(host.process_of("a")) == host.process_of("a"));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) {
    first->signal_group(signal);
    ::kill(host.process_of("a"), signal);
  }
  first->shutdown_requested();
  first->expect_status("shutdownRequested");
  must_be_served(*host.initialized("b"));
  CHECK(first->end() == 0);
}

TEST_CASE("the resident ends with its daemon, and leaves no socket", "[sharing]") {
  const machine host;
  const bool has_shards = GENERATE(true, false);
  const open_pipe ready;
  const pid_t daemon = ::fork();
  REQUIRE(daemon != -1);
  if (daemon == 0) {
    launched first = host.start("a");
    start(*first);
    first->records({"wait for stop"});
    launched second = host.start("b");
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
  REQUIRE(host.started().size() == 1);
  const pid_t resident = host.started().front();
  CHECK(is_running(resident));
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  CHECK(eventually([&] { return !is_running(resident); }));
  CHECK(host.sockets() == 0);
}

TEST_CASE(
    "another daemon, program, argument, variable or working directory has a resident of its own",
    "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  launched second;
  SECTION("argument") { second = host.initialized("b", {child, "manual", "at_once"}); }
  SECTION("variable") { second = host.initialized("b", {child, "manual"}, {"LANGUAGE=tlh"}); }
  SECTION("program") {
    fs::copy_file(child, host / "copy");
    second = host.initialized("b", {(host / "copy").string(), "manual"});
  }
  SECTION("working directory") {
    fs::current_path(host / "");
    second = host.initialized("b");
  }
  SECTION("daemon") {
    // The shell starts the launcher and waits for it.
    words command{"/bin/sh", "-c", "\"$0\" \"$@\"; exit $?", KCLXX_SHARE, child, "manual"};
    second = std::make_unique<scripted_daemon>(
        command, scripted_daemon::start_options{"", host.environment_of("b")});
    start(*second);
  }
  CHECK(host.process_of("a") != host.process_of("b"));
  must_be_served(*second);
  must_be_served(*first);
}

TEST_CASE("a program that is replaced on disk has a new resident; the old one continues",
          "[sharing]") {
  const machine host;
  const std::string program = (host / "program").string();
  fs::copy_file(child, program);
  const launched first = host.initialized("a", {program, "manual"});
  fs::copy_file(child, host / "new");
  fs::rename(host / "new", program);
  const launched second = host.initialized("b", {program, "manual"});
  const launched third = host.initialized("c", {program, "manual"});
  CHECK(host.process_of("a") != host.process_of("b"));
  CHECK(host.process_of("c") == host.process_of("b"));
  must_be_served(*first);
  must_be_served(*second);
}

TEST_CASE("a copy of the resident that closes 1 and 2 holds no shard open", "[sharing][P5]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  second->process({"fork and stay"});
  CHECK(first->end() == 0);
  first->rest();
  CHECK(second->end() == 0);
  second->rest();
  second->await_end_of_stderr();
}
