// SPDX-License-Identifier: Apache-2.0
// kclxx-share: launchers and residents that are killed at any step, and what they leave.
#include <filesystem>
#include <fstream>
#include <optional>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "process/played_peer.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;

TEST_CASE(
    "a resident that is killed at any step of the hand-over is replaced, or its launcher leaves",
    "[sharing]") {
  const machine host;
  const fs::path path = socket_of_killed_resident(host);
  descriptor resident = listen_at(path);
  const launched one = host.start("b");
  descriptor connection;
  SECTION("before it has answered") {
    std::optional<handed_shard> shard;
    SECTION("before it accepts") {
      REQUIRE(eventually([&] { return pending_connections(path) == 1; }));
    }
    SECTION("after it has accepted") { connection = accept_at(resident); }
    SECTION("after it has received the descriptors") {
      connection = accept_at(resident);
      shard = receive_at(connection);
    }
    resident.close();
    shard.reset();
    connection.close();
    start(*one);
    must_be_served(*one);
  }
  SECTION("after it has answered") {
    connection = accept_at(resident);
    {
      const handed_shard shard = receive_at(connection);
      CHECK(shard.variable("KCLXX_STREAM_NAME") == "b");
      CHECK(send_accepted(connection.get()));
      resident.close();
    }
    connection.close();
    CHECK(one->wait_exit() == resident_gone);
    CHECK(one->rest().empty());
    one->await_end_of_stderr();
  }
  SECTION("after it has closed the descriptors") {
    connection = accept_at(resident);
    {
      const handed_shard shard = receive_at(connection);
      CHECK(send_accepted(connection.get()));
    }
    CHECK(one->rest().empty());  // the launcher has none of them
    one->await_end_of_stderr();
    resident.close();
    connection.close();
    CHECK(one->wait_exit() == resident_gone);
  }
  SECTION("after it has sent the status") {
    connection = accept_at(resident);
    receive_at(connection);
    CHECK(send_accepted(connection.get()));
    CHECK(send_ended(connection.get(), 14));
    resident.close();
    connection.close();
    CHECK(one->wait_exit() == 14);
    fs::remove(path);
  }
  CHECK(host.sockets() == (host.started().size() > 1 ? 1U : 0U));
}

TEST_CASE("a launcher that is killed at any step leaves nothing in the resident", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const footprint before(host.process_of("a"));
  pipes shard;
  descriptor launcher = connect_to(host.socket());
  const auto offer = [&](const shard_message& message, const std::vector<int>& fds) {
    send_packet(launcher.get(), bytes_of(message), fds);
    return reply_at(launcher).value();
  };
  SECTION("after it has connected") {}
  SECTION("after it has sent something else") { send_packet(launcher.get(), "hello", {}); }
  SECTION("after it has sent half a message") {
    send_packet(launcher.get(), bytes_of(own_message()).substr(0, 20), shard.to_pass());
  }
  SECTION("after it has sent no, too few or too many descriptors") {
    const std::size_t count = GENERATE(0U, 1U, 6U);
    const std::vector<int> fds(count, shard.ends[0][0]);
    CHECK(offer(own_message(), fds).header.kind == message_kind::refused);
  }
  SECTION("after it has sent another version's message") {
    shard_message other = own_message();
    other.header.version = 2;
    const reply_message reply = offer(other, shard.to_pass());
    CHECK(reply.header.kind == message_kind::refused);
    CHECK(contains(reply.reason, "version 2"));
  }
  SECTION("after it has sent another daemon's message") {
    shard_message other = own_message();
    other.daemon.start += 1;
    CHECK(contains(offer(other, shard.to_pass()).reason, "another daemon"));
  }
  SECTION("after it has sent the message") {
    send_packet(launcher.get(), bytes_of(own_message()), shard.to_pass());
  }
  SECTION("after it has read the answer") {
    const reply_message reply = offer(own_message(), shard.to_pass());
    CHECK(reply.header.kind == message_kind::accepted);
    CHECK(reply.process == host.process_of("a"));
  }
  SECTION("after its shard has ended") {
    CHECK(offer(own_message(), shard.to_pass()).header.kind == message_kind::accepted);
    shard.close();
    const reply_message reply = reply_at(launcher).value();
    CHECK(reply.header.kind == message_kind::ended);
    CHECK(reply.status == 0);
  }
  launcher.close();
  before.must_come_back();
  must_be_served(*host.initialized("b"));
  must_be_served(*first);
}

namespace {

/// A program that waits until the file `gate` is gone before it becomes test_child.
words gated(const machine& host) {
  std::ofstream(host / "gate") << "";
  std::ofstream(host / "program") << "#!/bin/sh\necho $$ >> '" << (host / "pids").string()
                                  << "'\nwhile [ -e '" << (host / "gate").string()
                                  << "' ]; do sleep 0.01; done\nexec '" << child << "' \"$@\"\n";
  fs::permissions(host / "program", fs::perms(0700));
  return {(host / "program").string(), "manual"};
}

std::vector<pid_t> waiting_at_gate(const machine& host) {
  std::ifstream in(host / "pids");
  std::vector<pid_t> all;
  for (pid_t one = 0; in >> one;) all.push_back(one);
  return all;
}

}  // namespace

TEST_CASE("while the resident starts, its launcher or itself may be killed", "[sharing]") {
  const machine host;
  const words program = gated(host);
  const launched first = host.start("a", program);
  REQUIRE(eventually([&] { return waiting_at_gate(host).size() == 1; }));
  const launched second = host.start("b", program);
  REQUIRE(eventually([&] { return pending_connections(host.socket()) == 1; }));
  SECTION("the launcher") {
    first->kill();
    fs::remove(host / "gate");
    start(*second);
    first->await_end_of_stderr();
    CHECK(first->rest().empty());
    CHECK(host.started().size() == 1);
    must_be_served(*second);
  }
  SECTION("the resident") {
    ::kill(waiting_at_gate(host).front(), SIGKILL);
    fs::remove(host / "gate");
    start(*first);
    start(*second);
    CHECK(host.process_of("a") != host.process_of("b"));
    CHECK(contains(first->stderr_so_far(), "it has to call kclxx::run"));
    must_be_served(*first);
    must_be_served(*second);
  }
  SECTION("both") {
    first->kill();
    ::kill(waiting_at_gate(host).front(), SIGKILL);
    fs::remove(host / "gate");
    start(*second);
    must_be_served(*second);
    first->await_end_of_stderr();
  }
}

TEST_CASE("a launcher that is killed while it makes the socket leaves room for the next",
          "[sharing]") {
  const machine host;
  const fs::path path = socket_of_killed_resident(host);
  SECTION("after bind") {
    const descriptor bound = bind_at(path);
    must_be_served(*host.initialized("b"));
  }
  SECTION("after listen") {
    listen_at(path);
    must_be_served(*host.initialized("b"));
  }
  CHECK(host.started().size() == 2);
  CHECK(host.sockets() == 1);
}

#ifndef KCLXX_IS_SANITIZED  // a sanitizer has descriptors of its own
TEST_CASE("a launcher that cannot start the resident leaves no socket", "[sharing]") {
  const machine host;
  // Enough for the socket that listens, and not for one to the resident.
  scripted_daemon one({"/bin/sh", "-c", "ulimit -n 6; exec \"$0\" \"$@\"", KCLXX_SHARE, "/bin/cat"},
                      {"", host.environment_of("a")});
  one.send("hello");
  one.expect("hello");
  CHECK(one.end() == 0);
  CHECK(contains(one.stderr_so_far(), "no socket for the resident: Too many open files"));
  CHECK(host.sockets() == 0);
}
#endif

TEST_CASE("files of daemons that are gone are removed, unless somebody listens there",
          "[sharing]") {
  const machine host;
  must_be_served(*host.initialized("a"));
  const fs::path dead = host.folder() / "999999999-1-0123456789abcdef";
  listen_at(dead);
  const fs::path alive = host.folder() / "999999998-1-0123456789abcdef";
  const descriptor listening = listen_at(alive);
  const fs::path other = host.folder() / "note.txt";
  std::ofstream(other) << "";
  must_be_served(*host.initialized("b", {child, "manual", "at_once"}));
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive));
  CHECK(fs::exists(other));
}
