// SPDX-License-Identifier: Apache-2.0
// kclxx-share: launchers and residents that are killed at any step, and what they leave.
#include <fstream>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "process/played_peer.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;

TEST_CASE(
    "a resident that is killed at any step of the hand-over is replaced, or its launcher leaves",
    "[sharing]") {
  const machine box;
  const fs::path path = socket_of_killed_resident(box);
  const process_identity daemon = this_process();
  SECTION("before it accepts") {
    played_resident resident(path, [](const descriptor&) {});
    const launched launcher = box.start("b");
    REQUIRE(eventually([&] { return pending_connections(path) == 1; }));
    resident.kill();
    start(*launcher);
    must_be_served(*launcher);
  }
  SECTION("after it has accepted, or has received the descriptors") {
    const bool receives = GENERATE(false, true);
    descriptor connection;
    std::optional<handed_shard> shard;
    played_resident resident(path, [&](const descriptor& listening) {
      connection = accept_at(listening);
      if (receives) shard = receive_at(connection, daemon);
    });
    const launched launcher = box.start("b");
    resident.await_steps();
    resident.kill();
    start(*launcher);
    must_be_served(*launcher);
  }
  SECTION("after it has answered") {
    descriptor connection;
    std::optional<handed_shard> shard;
    played_resident resident(path, [&](const descriptor& listening) {
      connection = accept_at(listening);
      shard = receive_at(connection, daemon);
      REQUIRE(shard->variable("KCLXX_STREAM_NAME") == "b");
      REQUIRE(send_accepted(connection.get()));
    });
    const launched launcher = box.start("b");
    resident.await_steps();
    resident.kill();
    CHECK(launcher->wait_exit() == resident_gone);
    CHECK(launcher->rest().empty());
    launcher->await_end_of_stderr();
  }
  SECTION("after it has closed the descriptors, or has sent the status") {
    const bool sends = GENERATE(false, true);
    descriptor connection;
    played_resident resident(path, [&](const descriptor& listening) {
      connection = accept_at(listening);
      {
        const handed_shard shard = receive_at(connection, daemon);
        REQUIRE(send_accepted(connection.get()));
      }
      if (sends) REQUIRE(send_ended(connection.get(), 14));
    });
    const launched launcher = box.start("b");
    CHECK(launcher->rest().empty());  // the launcher has none of them
    launcher->await_end_of_stderr();
    resident.await_steps();
    resident.kill();
    CHECK(launcher->wait_exit() == (sends ? 14 : resident_gone));
    if (sends) fs::remove(path);
  }
  CHECK(box.sockets() == (box.started().size() > 1 ? 1U : 0U));
}

TEST_CASE("a socket that only a copy of a dead resident has open is nobody's", "[sharing]") {
  const machine box;
  const descriptor kept = bind_at(socket_of_killed_resident(box));
  const pid_t resident = ::fork();
  if (resident == 0) ::_exit(::listen(kept.get(), 16));
  const int how = GENERATE(0, WNOWAIT);  // a first process of a container may reap none
  siginfo_t end{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(resident), &end, WEXITED | how) == 0);
  REQUIRE(end.si_status == 0);
  const launched launcher = box.start("b");
  start(*launcher);
  must_be_served(*launcher);
}

TEST_CASE("a launcher hears a refusal though the resident has not read its message, and is gone",
          "[sharing]") {
  const machine box;
  const fs::path path = socket_of_killed_resident(box);
  const open_pipe offered;
  const open_pipe stopped;
  played_resident resident(path, [&](const descriptor& listening) {
    const descriptor connection = accept_at(listening);
    char byte = 0;
    REQUIRE(::recv(connection.get(), &byte, 1, MSG_PEEK) == 1);
    REQUIRE(::write(offered.write_end(), "o", 1) == 1);
    REQUIRE(::read(stopped.read_end(), &byte, 1) == 1);
    REQUIRE(send_refused(connection.get(), "as told"));
  });
  const launched launcher = box.start("b");
  // A launcher that has only connected would start another resident.
  char byte = 0;
  REQUIRE(::read(offered.read_end(), &byte, 1) == 1);
  launcher->signal_group(SIGSTOP);
  REQUIRE(::write(stopped.write_end(), "s", 1) == 1);
  resident.await_steps();
  resident.kill();
  launcher->signal_group(SIGCONT);
  must_be_served_alone(*launcher, "the program refused: as told");
}

TEST_CASE("a launcher that is killed at any step leaves nothing in the resident", "[sharing]") {
  const machine box;
  const launched first = box.initialized("a");
  const footprint before(box.process_of("a"));
  std::optional<pipes> shard(std::in_place);
  descriptor launcher = connect_to(box.socket());
  const auto offer = [&](const shard_message& message, const std::vector<int>& fds) {
    send_packet(launcher.get(), bytes_of(message), fds);
    return reply_at(launcher).value();
  };
  SECTION("after it has connected") {}
  SECTION("after it has sent something else") { send_packet(launcher.get(), "hello", {}); }
  SECTION("after it has sent the message") {
    send_packet(launcher.get(), bytes_of(own_message()), shard->to_pass());
  }
  SECTION("after it has read the answer") {
    const reply_message reply = offer(own_message(), shard->to_pass());
    CHECK(reply.header.kind == message_kind::accepted);
  }
  SECTION("after its shard has ended") {
    CHECK(offer(own_message(), shard->to_pass()).header.kind == message_kind::accepted);
    shard.reset();
    const reply_message reply = reply_at(launcher).value();
    CHECK(reply.header.kind == message_kind::ended);
    CHECK(reply.status == 0);
  }
  launcher.close();
  before.must_come_back();
  must_be_served(*box.initialized("b"));
  must_be_served(*first);
}

TEST_CASE("while the resident starts, its launcher or itself may be killed, and its daemon may go",
          "[sharing]") {
  const machine box;
  const words program = gated(box);
  const launched first = box.start("a", program);
  REQUIRE(eventually([&] { return waiting_at_gate(box).size() == 1; }));
  const launched second = box.start("b", program);
  REQUIRE(eventually([&] { return pending_connections(box.socket()) == 1; }));
  SECTION("the launcher") {
    first->kill();
    fs::remove(box / "gate");
    start(*second);
    first->await_end_of_stderr();
    CHECK(first->rest().empty());
    CHECK(box.started().size() == 1);
    must_be_served(*second);
  }
  SECTION("the resident") {
    ::kill(waiting_at_gate(box).front(), SIGKILL);
    CHECK(first->wait_exit() == resident_gone);
    fs::remove(box / "gate");
    start(*second);
    CHECK(box.started().size() == 1);
    must_be_served(*second);
  }
  SECTION("both") {
    first->kill();
    ::kill(waiting_at_gate(box).front(), SIGKILL);
    fs::remove(box / "gate");
    start(*second);
    must_be_served(*second);
    first->await_end_of_stderr();
  }
  SECTION("the daemon: its launchers leave, and start nothing any more") {
    first->initialize();
    first->close_input();
    CHECK(first->wait_exit() == daemon_gone);
    first->await_stderr("the daemon has gone");
    second->close_input();
    CHECK(second->wait_exit() == 0);  // nothing was asked
    CHECK(waiting_at_gate(box).size() == 1);
    fs::remove(box / "gate");
  }
}

TEST_CASE("launchers of a program that ends early start it one after the other", "[sharing]") {
  const machine box;
  const std::string program = box.program("mkdir '" + (box / "runs").string() + "' || echo x >>'" +
                                          (box / "twice").string() + "'\nsleep 0.1\nrmdir '" +
                                          (box / "runs").string() + "'\nkill -9 $$\n");
  std::vector<launched> all;
  for (const char* stream : {"a", "b", "c", "d", "e"}) {
    all.push_back(box.start(stream, {program}));
  }
  for (const launched& launcher : all) CHECK(launcher->wait_exit() == resident_gone);
  CHECK_FALSE(fs::exists(box / "twice"));
  CHECK(box.sockets() == 0);
}

TEST_CASE("a program that main starts before run, and that outlives it, holds up no launcher",
          "[sharing][P59]") {
  const machine box;
  const std::string helper = "sleep 60 </dev/null >/dev/null 2>&1 & echo $! copy >>\"$JOURNAL\"\n";
  SECTION("where main fails") {
    const words program{box.program(helper + "exit 3\n")};
    const launched first = box.start("a", program);
    const launched second = box.start("b", program);
    CHECK(first->wait_exit() == 3);
    CHECK(second->wait_exit() == 3);
  }
  SECTION("where the resident crashes") {
    const words program{box.program(helper + "exec '" + child + "' manual\n")};
    const launched first = box.initialized("a", program);
    const launched second = box.initialized("b", program);
    ::kill(box.process_of("a"), SIGKILL);
    CHECK(first->wait_exit() == resident_gone);
    CHECK(second->wait_exit() == resident_gone);
    must_be_served(*box.initialized("c", program));
    CHECK(box.started().size() == 2);
  }
  CHECK(box.sockets() <= 1);
}

TEST_CASE("a program that main starts before run has no descriptor of the resident's",
          "[sharing]") {
  const machine box;
  const launched launcher = box.initialized("a", {child, "manual", "helper_before_run"});
  REQUIRE(box.copies().size() == 1);
  CHECK(eventually([&] { return descriptors_of(box.copies().front()) == 3; }));
  must_be_served(*launcher);
}

TEST_CASE("files of daemons that are gone are removed, unless somebody listens there",
          "[sharing]") {
  const machine box;
  must_be_served(*box.initialized("a"));
  const fs::path dead = box.folder() / "999999999-1-0123456789abcdef";
  listen_at(dead);
  const fs::path alive = box.folder() / "999999998-1-0123456789abcdef";
  const descriptor listening = listen_at(alive);
  const fs::path stray_file = box.folder() / "note.txt";
  std::ofstream(stray_file) << "";
  must_be_served(*box.initialized("b", {child, "manual", "at_once"}));
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive));
  CHECK(fs::exists(stray_file));
}
