// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/program_path.hpp"
#include "support/catch.hpp"
#include "support/forked.hpp"
#include "support/refused_call.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"
#include "tool/process/program.hpp"

using namespace kclxx::tool;
using kclxx::test::read_all;
using namespace std::chrono_literals;

namespace {

child_process::clock::time_point in(std::chrono::milliseconds time) {
  return child_process::clock::now() + time;
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

std::string why_not(const std::vector<std::string>& command) {
  try {
    child_process child(command);
  } catch (const start_error& error) {
    return error.what();
  }
  return "it started";
}

}  // namespace

TEST_CASE("programs are started, awaited and killed where the system has no pidfd", "[tool]") {
  const int error = GENERATE(ENOSYS, EPERM);  // Linux before 5.3; an old seccomp profile
  const auto seen = kclxx::test::in_forked_copy([&] {
    kclxx::test::refuse_call(SYS_pidfd_open, error);
    const auto result = run_program({"sh", "-c", "echo text; exit 7"});
    child_process child({"cat"}, child_process::error_output::inherited,
                        child_process::process_group::own);
    const bool ran = !child.wait_until(in(0ms)).has_value();
    child.kill(SIGTERM);
    const bool has_ended = child.wait_until(in(20s)) == child_exit{0, SIGTERM};
    pid_t killed = 0;
    {
      const child_process cat({"cat"});
      killed = cat.pid();
    }
    return kclxx::test::first_false({result.end == child_exit{7, 0}, result.output == "text\n", ran,
                                     has_ended, !exists(killed)});
  });
  CAPTURE(seen.err);
  CHECK(seen.status == 0);
}

TEST_CASE("what cannot be started is named, with the reason", "[tool]") {
  CHECK(why_not({"/no/such/program"}) ==
        "/no/such/program cannot be started: No such file or directory");
  CHECK(why_not({"no-such-program-in-PATH"}) ==
        "no-such-program-in-PATH cannot be started: No such file or directory");
  CHECK(why_not({"/dev/null"}) == "/dev/null cannot be started: Permission denied");
}

TEST_CASE(
    "the shell runs a script without a first line that names a program, by its path or found in "
    "PATH, where an empty folder is the current one",
    "[tool]") {
  const kclxx::test::temporary_folder folder;
  const auto script = folder.path() / "kclxx-script";
  std::ofstream(script) << "echo \"found $1\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string path = GENERATE_REF(folder.path().string(), std::string("/usr/bin:"),
                                        std::string(":/usr/bin"), std::string());
  CAPTURE(path);
  CHECK(kclxx::test::in_forked_copy([&] {
          std::filesystem::current_path(path == folder.path() ? "/" : folder.path());
          ::setenv("PATH", path.c_str(), 1);
          child_process by_path({script.string(), "argument"});
          if (read_all(by_path.output.get()) != "found argument\n") return 1;
          child_process child({"kclxx-script", "argument"});
          return read_all(child.output.get()) == "found argument\n" ? 0 : 2;
        }).status == 0);
}

TEST_CASE("without PATH, programs are those of /bin and /usr/bin", "[tool]") {
  const kclxx::test::temporary_folder folder;
  std::ofstream(folder.path() / "kclxx-script") << "echo found\n";
  std::filesystem::permissions(folder.path() / "kclxx-script", std::filesystem::perms::owner_all);
  CHECK(kclxx::test::in_forked_copy([&] {
          std::filesystem::current_path(folder.path());
          ::unsetenv("PATH");
          std::array<char, PATH_MAX> place{};
          const char* const shell = kclxx::io::find_program("sh", place);
          const bool is_shell = shell != nullptr && std::string_view(shell) == "/bin/sh";
          return is_shell && kclxx::io::find_program("kclxx-script", place) == nullptr ? 0 : 1;
        }).status == 0);
}

TEST_CASE("a child holds no descriptor of this process but 0 to 2, nor of another child's pipes",
          "[tool]") {
  child_process other_child({"cat"});
  child_process child({"/bin/sh", "-c", "ls -l /proc/$$/fd"});
  const std::string list = read_all(child.output.get());
  const auto own_pipes = [&] {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = list.find("pipe:", at)) != std::string::npos; ++at) ++count;
    return count;
  }();
  CAPTURE(list);
  CHECK(own_pipes >= 2);
  for (const int fd : {other_child.input.get(), other_child.output.get(), child.input.get()}) {
    const auto link = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    const bool is_its_own = fd == child.input.get();  // the other end of that pipe is its stdin
    CHECK((list.find(link.string()) != std::string::npos) == is_its_own);
  }
  other_child.input.close();
  CHECK(other_child.wait_until(in(20s)) == child_exit{0, 0});  // nobody else holds its input
}
