// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>

#include <CLI/CLI.hpp>

#include <kclxx/version.hpp>

#include "cli/capture_command.hpp"
#include "cli/check_command.hpp"
#include "cli/command.hpp"
#include "cli/daemon_command.hpp"
#include "cli/generate_command.hpp"
#include "cli/local_command.hpp"
#include "cli/replay_command.hpp"

int main(int argc, char** argv) {
  using namespace kclxx::cli;
  // Inherited as ignored, it would keep the children's exit statuses from us.
  std::signal(SIGCHLD, SIG_DFL);
  CLI::App app(
      "Records and makes dialogues between the KCL MultiLangDaemon and its children,\n"
      "and starts the daemon, and what it needs for trying it out.\n",
      "kclxx");
  app.set_version_flag("--version", std::string("kclxx ") + kclxx::version);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.require_subcommand(1);
  app.footer("kclxx COMMAND --help has an example of each.");
  invocation run;
  add_capture_command(app, run);
  add_check_command(app, run);
  add_daemon_command(app, run);
  add_generate_command(app, run);
  add_local_command(app, run);
  add_replay_command(app, run);
  return run_command_line(app, run, argc, argv);
}
