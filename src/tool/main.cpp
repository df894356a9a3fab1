// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <kclxx/version.hpp>

#ifdef KCLXX_HAS_HOST
#include "host/commands.hpp"
#endif
#include "tool/command.hpp"

namespace {

using kclxx::tool::command_status;

// Opens the descriptors 0, 1 and 2 that are closed. Otherwise the next pipe or file would get such
// a number and be taken for stdin. They stay unusable: reading and writing fail with EBADF.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (::open("/dev/null", O_PATH | O_CLOEXEC) == fd) continue;
    std::perror("kclxx: /dev/null cannot be opened");
    std::_Exit(static_cast<int>(command_status::setup_failed));
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kclxx::tool;
  occupy_standard_descriptors();
  // SIGCHLD may be inherited as ignored, and the system then drops the children's exit statuses.
  std::signal(SIGCHLD, SIG_DFL);
  // With a handler a file that is too large is an error of write(). A child would inherit SIG_IGN.
  std::signal(SIGXFSZ, [](int) {});
  CLI::App app(
      "Records, replays and checks dialogues between the KCL MultiLangDaemon and its children, "
      "and\n"
      "feeds children from a pipe.\n",
      "kclxx");
  app.set_version_flag("--version", std::string("kclxx ") + kclxx::version);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.require_subcommand(1);
  app.footer("kclxx COMMAND --help has an example of each.");
  invocation run;
  add_capture_command(app, run);
  add_check_command(app, run);
  add_feed_command(app, run);
  add_new_command(app, run);
  add_replay_command(app, run);
#ifdef KCLXX_HAS_HOST
  kclxx::host::add_daemon_command(app, run);
  kclxx::host::add_health_command(app, run);
  kclxx::host::add_leases_command(app, run);
  kclxx::host::add_local_command(app, run);
#endif
  return run_command_line(app, run, argc, argv);
}
