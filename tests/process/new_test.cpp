// SPDX-License-Identifier: Apache-2.0
// kclxx new: what it refuses. tests/package builds what it makes.
#include <csignal>
#include <filesystem>
#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

TEST_CASE("a name that cannot be a project's is refused with the reason", "[new]") {
  const sandbox box;
  const auto [name, why] = GENERATE(table<std::string, std::string>({
      {"Clicks", "Clicks is no name: 3 to 63 of a-z 0-9 _ -, the first a letter"},
      {"ab", "ab is no name"},
      {"test", "test is no name: CMake has a target test"},
      {"install", "install is no name: CMake has a target install"},
      {"preinstall", "preinstall is no name: CMake has a target preinstall"},
  }));
  CAPTURE(name);
  const auto all = box.kclxx({"new", name});
  CHECK(all.status == 2);
  CHECK_THAT(all.err, Contains(why));
  CHECK_FALSE(std::filesystem::exists(box / name));
}

TEST_CASE("run-local passes a signal on to the daemon, and waits for it and for its cleaning up",
          "[new]") {
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  CAPTURE(signal);
  const sandbox box;
  REQUIRE(box.kclxx({"new", "clicks"}).status == 0);
  std::filesystem::create_directory(box / "clicks/build");
  const std::string gate = (box / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  box.program("bin/cmake", "exit 0\n");
  box.program("bin/kclxx",
              "echo \"$1 $2\" >> $HOME/asked\n"
              "[ \"$1 $2\" = 'daemon run' ] || exit 0\n"
              "trap 'echo daemon ended >> $HOME/asked; exit 143' TERM\n"
              "echo started > $HOME/gate\n"
              "while :; do sleep 0.01; done\n");
  const forked_copy run = box.start({"clicks/run-local"});
  CHECK(read_file(gate) == "started\n");  // waits for the daemon
  ::kill(run.pid(), signal);
  CHECK(run.wait() == 143);
  CHECK(box.read("asked").ends_with("daemon run\ndaemon ended\nlocal stop\n"));
}
