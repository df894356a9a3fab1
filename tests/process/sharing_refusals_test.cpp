// SPDX-License-Identifier: Apache-2.0
// kclxx-share: what is not shared, and who does not meet.
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/played_peer.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;

TEST_CASE("what does not fit costs one warning, and the program serves its shard alone",
          "[sharing]") {
  const machine box;
  SECTION("a folder that is open to others") {
    fs::create_directory(box.folder());
    fs::permissions(box.folder(), fs::perms(0750));
    must_be_served_alone(*box.start("a"), "is open to other users; chmod 700 ");
  }
  SECTION("a folder that cannot be made") {
    fs::remove(box / "");
    must_be_served_alone(*box.start("a"), "cannot be made: No such file or directory");
  }
  SECTION("a symbolic link in place of the folder") {
    fs::create_directory(box / "elsewhere");
    fs::permissions(box / "elsewhere", fs::perms(0700));
    fs::create_directory_symlink(box / "elsewhere", box.folder());
    must_be_served_alone(*box.start("a"), "cannot be opened: ");
  }
  SECTION("a program whose main closes what it has not opened") {
    must_be_served_alone(*box.start("a", {child, "manual", "closes_descriptors"}),
                         "main has closed descriptors");
    for (const pid_t process : box.started()) CHECK_FALSE(is_running(process));
    CHECK(box.sockets() == 0);
  }
  SECTION("a program that does not call kclxx::run") {
    const launched launcher = box.start("a", {"/bin/cat"});
    launcher->send("hello");
    launcher->expect("hello");
    CHECK(launcher->end() == 0);
    CHECK(contains(launcher->stderr_so_far(), "it has to call kclxx::run"));
    CHECK(box.sockets() == 0);
  }
  SECTION("more variables than a message holds") {
    must_be_served_alone(
        *box.start("a", {child, "manual"}, {"KCLXX_LONG=" + std::string(40000, 'x')}),
        "the shard cannot be handed over: Argument list too long");
  }
}

TEST_CASE("a program that cannot be started is named", "[sharing]") {
  const machine box;
  const launched launcher = box.start("a", {"/nowhere/program"});
  CHECK(launcher->wait_exit() == 127);
  CHECK(launcher->stderr_so_far() == "kclxx-share: there is no program /nowhere/program\n");
}

TEST_CASE("a file on stdin is read by a process of its own", "[sharing][P58]") {
  const machine box;
  std::ofstream(box / "dialogue.jsonl") << R"({"action":"initialize","shardId":"s"})"
                                        << "\n";
  scripted_daemon launcher({KCLXX_SHARE, child},
                           {(box / "dialogue.jsonl").string(), box.environment_of("a")});
  launcher.expect_status("initialize");
  CHECK(launcher.wait_exit() == 0);
  CHECK(contains(launcher.stderr_so_far(), "stdin is neither a pipe nor a socket"));
}

TEST_CASE("without a daemon nothing is started, so that no resident outlives it", "[sharing]") {
  const machine box;
  // A pipe that has ended for certain.
  scripted_daemon launcher(
      {"/bin/sh", "-c", ": | { cat; \"$0\" \"$@\"; }", KCLXX_SHARE, child, "manual"},
      {"", box.environment_of("a")});
  CHECK(launcher.wait_exit() == 0);
  CHECK(box.started().empty());
  CHECK(box.sockets() == 0);
}

TEST_CASE("a launcher waits for a folder's lock with a limit, and then serves the shard alone",
          "[sharing]") {
  const machine box;
  fs::create_directory(box.folder());
  fs::permissions(box.folder(), fs::perms(0700));
  const descriptor folder(::open(box.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(folder.get(), LOCK_EX) == 0);
  const launched launcher = box.start("a");
  must_be_served_alone(*launcher, "the folder cannot be locked: ");
}

TEST_CASE("a socket that is another's is not used, and not removed by the resident", "[sharing]") {
  const machine box;
  const launched first = box.initialized("a");
  const fs::path path = box.socket();
  fs::remove(path);
  const descriptor thief = listen_at(path);
  const launched second = box.start("b");
  SECTION("by a process that answers something else") {
    const descriptor connection = accept_at(thief);
    REQUIRE(::send(connection.get(), "220 mail ready", 14, 0) == 14);
    must_be_served_alone(*second, "something else than a resident answers");
  }
  SECTION("by a resident of another version") {
    const descriptor connection = accept_at(thief);
    reply_message reply;
    reply.header.version = 2;
    reply.header.kind = message_kind::refused;
    REQUIRE(::send(connection.get(), &reply, sizeof reply, 0) == sizeof reply);
    must_be_served_alone(*second, "the resident has version 2 of the hand-over");
  }
  SECTION("by a process that ends the connection") {
    accept_at(thief).close();
    must_be_served_alone(*second, "the resident has closed the connection");
  }
  CHECK(fs::exists(path));
  must_be_served(*first);
}

TEST_CASE("only the user's own processes meet", "[sharing]") {
  constexpr uid_t another_user = 65534;
  if (::geteuid() != 0 || ::seteuid(another_user) != 0) {
    WARN("needs root, and another user to play");
    return;
  }
  REQUIRE(::seteuid(0) == 0);
  const machine box;
  SECTION("the folder of another user is refused") {
    fs::create_directory(box.folder());
    REQUIRE(::chown(box.folder().c_str(), another_user, another_user) == 0);
    must_be_served_alone(*box.start("a"), "belongs to the user 65534");
  }
  SECTION("another user's resident is refused") {
    const fs::path path = socket_of_killed_resident(box);
    const descriptor listening = bind_at(path);
    REQUIRE(::seteuid(another_user) == 0);
    const int listens = ::listen(listening.get(), 16);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(listens == 0);
    must_be_served_alone(*box.start("b"), "belongs to the user 65534");
  }
  SECTION("another user's launcher is not served") {
    const launched first = box.initialized("a");
    fs::permissions(box / "", fs::perms(0711));
    fs::permissions(box.folder(), fs::perms(0711));
    fs::permissions(box.socket(), fs::perms(0666));
    const fs::path path = box.socket();
    REQUIRE(::seteuid(another_user) == 0);
    const descriptor launcher = connect_to(path);
    REQUIRE(::seteuid(0) == 0);
    const pipes shard;
    const auto reply = reply_at(launcher);
    REQUIRE(reply);
    CHECK(reply->header.kind == message_kind::refused);
    CHECK(reply->reason == std::string("it serves another user"));
    must_be_served(*first);
  }
}
