// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/trim.hpp>

#include "host/commands.hpp"
#include "host/embedded.hpp"
#include "host/lease_table/observation.hpp"
#include "host/packages.hpp"
#include "io/descriptor.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/line_splitter.hpp"
#include "tool/process/program.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace fs = std::filesystem;

namespace {

/// A command of `kclxx local`, which the program for Node.js carries out.
struct local_call {
  enum class need {
    nothing,     ///< it looks at processes and files alone
    what_runs,   ///< it talks to it
    everything,  ///< it starts it
  };
  std::string command;
  need needs = need::nothing;
  bool changes_state = false;  ///< it holds the lock of the directory
  std::string directory;       ///< empty: the user's
  std::string input;           ///< becomes its stdin; "-": stdin as it is; empty: none
  std::vector<std::pair<std::string, std::string>> options;
};

const std::string local_fetch = "kclxx local fetch";

void write_files(const fs::path& folder, const embedded::folder& files) {
  for (const embedded::file& file : files.files) write_file(folder / file.name, file.text);
}

using files = std::vector<fs::path>;

// Each of these functions brings a package into the cache, unless it is there, and gives its
// compared files.

files local_program(const fs::path& cache) {
  const embedded::folder& program = embedded::local_program;
  return fetch_package(cache, {program.name, program.checksums}, local_fetch,
                       [&](const fs::path& folder) { write_files(folder, program); });
}

/// The files of a local Kinesis, by npm: of its package only those that run.
files local_kinesis(const fs::path& cache) {
  const embedded::folder& packages = embedded::local_packages;
  const auto fill = [&](const fs::path& folder) {
    const fs::path work = folder / "npm";
    fs::create_directory(work);
    write_files(work, packages);
    run_npm(work, "a local Kinesis");
    for (const char* name : {"main.js", "server.json"}) {
      const fs::path file = work / "node_modules" / "kinesis-local" / name;
      std::error_code error;
      fs::copy_file(file, folder / name, error);
      if (error) cannot_set_up("npm did not bring " + file.string() + ", and reported no error");
    }
    fs::remove_all(work);
  };
  return fetch_package(cache, {packages.name, packages.checksums}, local_fetch, fill);
}

/// The files of DynamoDB Local, by Maven.
files local_dynamodb(const fs::path& cache) {
  const embedded::project& project = embedded::dynamodb_local;
  const auto fill = [&](const fs::path& folder) {
    run_maven(folder, project.pom, "DynamoDB Local");
  };
  return fetch_package(cache, {project.folder, project.checksums}, local_fetch, fill);
}

fs::path folder_of(const files& package_files) { return package_files.front().parent_path(); }

std::string find_node() {
  if (const auto node = find_program("node")) return *node;
  cannot_set_up("node is not in PATH; on Debian: apt-get install nodejs");
}

fs::path directory_of(const local_call& call) {
  return call.directory.empty() ? user_folder("XDG_STATE_HOME", ".local/state") / "local"
                                : fs::absolute(call.directory);
}

/// Keeps inherited descriptors from Node.js: the emulators live on, and a caller's pipe must not
/// live on with them. Node.js itself keeps only its first few descriptors from its children.
void keep_inherited_from_node() {
  std::error_code error;
  for (fs::directory_iterator entry("/dev/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const int fd = std::atoi(entry->path().filename().c_str());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

void open_input(const std::string& name) {
  if (name == "-") return;
  const std::string path = name.empty() ? "/dev/null" : name;
  const io::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() || ::dup2(file.get(), STDIN_FILENO) == -1) cannot_set_up(path, "opened");
  std::error_code error;
  if (fs::is_directory(path, error)) cannot_set_up(path + " is a directory");
}

/// Brings all that `kclxx local` needs into the cache, and gives the folders.
/// Errors: command_error.
std::vector<std::string> fetch_local() {
  const fs::path cache = default_cache();
  return {folder_of(local_program(cache)), folder_of(local_kinesis(cache)),
          folder_of(local_dynamodb(cache))};
}

/// The program for Node.js, and its arguments. Opens the call's input as stdin.
/// Errors: command_error.
std::vector<std::string> node_command(const local_call& call) {
  const fs::path cache = default_cache();
  const fs::path directory = directory_of(call);
  for (const fs::path& trusted : {directory, directory / "state.json"}) require_own(trusted);
  open_input(call.input);
  std::error_code error;
  if (call.needs == local_call::need::what_runs && !fs::exists(directory / "state.json", error)) {
    cannot_set_up("nothing runs in " + directory.string() + "; kclxx local start starts it");
  }
  const std::string node = find_node();
  std::vector<std::string> command{node, (folder_of(local_program(cache)) / "local.js").string(),
                                   call.command, "directory=" + directory.string()};
  for (const auto& [name, value] : call.options) command.push_back(name + "=" + value);
  if (call.needs == local_call::need::everything) {
    command.push_back("java=" + find_java());
    const files dynamodb = local_dynamodb(cache);
    command.push_back("dynamodb-jars=" + folder_of(dynamodb).string());
    command.push_back("dynamodb-class-path=" + class_path(dynamodb));
    ::setenv("KCLXX_LOCAL_PACKAGES", folder_of(local_kinesis(cache)).c_str(), 1);
  }
  ::unsetenv("NODE_PATH");
  return command;
}

/// Becomes Node.js. Does not return.
/// Errors: command_error.
[[noreturn]] void run_local(const local_call& call) {
  std::vector<std::string> command = node_command(call);
  const fs::path directory = directory_of(call);
  std::error_code error;
  if (call.needs == local_call::need::everything) fs::create_directories(directory, error);
  if (errno = error.value(); error) cannot_set_up(directory, "made");
  if (call.needs == local_call::need::everything) keep_inherited_from_node();
  io::descriptor lock;
  // The lock is held as long as this process lives, also when it has become Node.js.
  if (call.changes_state &&
      (call.needs == local_call::need::everything || fs::exists(directory / "state.json", error))) {
    lock = lock_folder(directory);
  }
  // Node.js would take /dev/null for what main() has put in place of a closed descriptor.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) ::fcntl(standard, F_SETFD, 0);
  exec(std::move(command));
}

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string option_of(const local_call& call, std::string_view name) {
  const auto found = std::find_if(call.options.begin(), call.options.end(),
                                  [&](const auto& option) { return option.first == name; });
  return found == call.options.end() ? "" : found->second;
}

void print(const lease_table::picture& leases, const local_call& call, const std::string& stream) {
  const std::time_t now = std::time(nullptr);
  if (!option_of(call, "tsv").empty()) {
    std::cout << to_tsv(leases, now) << std::flush;
    return;
  }
  const bool is_redrawn = !option_of(call, "watch").empty() && ::isatty(STDOUT_FILENO) == 1;
  std::tm local{};
  ::localtime_r(&now, &local);
  std::cout << (is_redrawn ? "\x1b[H\x1b[J" : "")
            << printable("application " + option_of(call, "application") + ", stream " + stream)
            << ", at " << std::put_time(&local, "%H:%M:%S") << '\n'
            << to_table(leases, now) << std::flush;
}

/// Has Node.js read the lease table, once or until it is ended, and prints it. Returns Node's exit
/// status.
/// Errors: command_error, start_error, lease_table::bad_scan.
int show_local_leases(const local_call& call) {
  child_process node(node_command(call));
  node.input.close();
  lease_table::observation seen(lease_table::renewal_limit);
  const steady_clock::time_point begin = steady_clock::now();
  line_splitter lines;
  for (;;) {
    constexpr std::size_t piece = 65'536;
    const ssize_t size = ::read(node.output.get(), lines.prepare(piece), piece);
    if (size == -1 && errno == EINTR) continue;
    if (size == -1) cannot_set_up("what Node.js prints", "read");
    if (size == 0) break;
    lines.commit(static_cast<std::size_t>(size));
    for (std::string_view line; lines.next(line);) {
      lease_table::scan table = lease_table::parse_scan(line);
      const std::string stream = table.stream;
      seen.add(std::move(table),
               std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin));
      print(seen.look(), call, stream);
      if (!std::cout) return 0;  // its reader is gone; the message follows
    }
  }
  return node.wait().shell_status();
}

using need = local_call::need;

/// An option that is passed unchanged to the program for Node.js.
struct passed_option {
  enum class kind { required, text, number, flag };
  const char* name;
  kind is;
  const char* help;
  const char* type = "TEXT";
  std::uint64_t most = 0;  ///< the largest number; the smallest one is 1
};
using kind = passed_option::kind;

const passed_option the_stream{"STREAM", kind::required, "The stream"};

struct passed_on {
  command_text text;
  need needs;
  std::vector<passed_option> options{};
  bool changes_state = false;
};

const passed_on passed_on_commands[] = {
    {{"start",
      "Starts a local Kinesis and DynamoDB, waits until both listen, and prints shell commands\n"
      "that direct AWS clients and `kclxx daemon run` to them. Both are empty, run until `stop`,\n"
      "and store nothing on disk. They accept connections from this machine alone, from all of\n"
      "its users, without authentication. Exit status 1: they run already.",
      "eval \"$(kclxx local start)\""},
     need::everything,
     {},
     true},
    {{"stop", "Ends both and discards their data.", "kclxx local stop"}, need::nothing, {}, true},
    {{"env", "Prints the shell commands of `start` again, for another shell.",
      "eval \"$(kclxx local env)\""},
     need::nothing},
    {{"status", "Shows what runs. Exit status 1: not both run.",
      "kclxx local status || kclxx local start"},
     need::nothing},
    {{"create-stream", "Creates a stream, and waits until it can be used.",
      "kclxx local create-stream words --shards 4"},
     need::what_runs,
     {{"STREAM", kind::required, "Its name"},
      {"--shards", kind::number, "How many  [1]", "N", 5000}}},
    {{"shards", "Lists a stream's shards.", "kclxx local shards words"},
     need::what_runs,
     {the_stream, {"--tsv", kind::flag, "Without a header line, separated by tabs: for scripts"}}},
    {{"put",
      "Puts each line of a file on a stream as a record. Blank lines are left out and counted.\n"
      "By default each line has a partition key of its own. With --data the lines are payloads\n"
      "that are put again and again, as a load.",
      "kclxx local put words README.md\n"
      "  echo 'user-1:clicked' | kclxx local put words - --key-separator :\n"
      "  kclxx local put clicks --data events.jsonl --rate 200"},
     need::what_runs,
     {the_stream,
      {"--records", kind::number, "With --data: how many records to put  [no end]", "N",
       1'000'000'000},
      {"--rate", kind::number, "Records a second  [as fast as they are taken]", "N", 1'000'000},
      {"--partition-key", kind::text, "The key of all records"},
      {"--key-separator", kind::text,
       "The text between a line's key and its data; the record is the data alone"}}},
    {{"split", "Splits a shard in the middle, and prints its child shards.",
      "kclxx local split words shardId-000000000000\n  kclxx local split words 0"},
     need::what_runs,
     {the_stream, {"SHARD", kind::required, "The shard, or its number"}}},
    {{"merge", "Merges two neighbouring shards, and prints their child.",
      "kclxx local merge words 1 2"},
     need::what_runs,
     {the_stream,
      {"SHARD", kind::required, "A shard, or its number"},
      {"OTHER", kind::required, "Its neighbour"}}},
    {{"create-lease-table",
      "Creates the lease table that the daemon of KCL 3.x creates at its first start, with a "
      "free\nlease for each shard without a parent, or fills an empty one. This saves half a "
      "minute, in\nwhich the KCL waits for other workers that may be filling the table.",
      "kclxx local create-lease-table my-application --stream words"},
     need::what_runs,
     {{"APPLICATION", kind::required, "applicationName in the daemon's properties"},
      {"--stream", kind::required, "Its stream", "NAME"}}},
    {{"leases",
      "Shows the lease table of an application, as kclxx leases does, and how many records come\n"
      "after each checkpoint (lag), and the age of the oldest of these.",
      "kclxx local leases my-application --watch"},
     need::what_runs,
     {{"APPLICATION", kind::required, "applicationName in the daemon's properties"},
      {"--stream", kind::text,
       "The stream it reads  [the one of the same name, or the only one there is]", "NAME"},
      {"--watch", kind::flag, "Repeat each second"},
      {"--tsv", kind::flag,
       "For scripts: a header line, then a line for each lease, its fields separated by tabs"}}},
};

/// Adds an option that the program for Node.js knows in lower case and without the dashes.
void add_passed_option(CLI::App& command, const passed_option& row, local_call& call) {
  const std::string name =
      boost::to_lower_copy(boost::trim_left_copy_if(std::string(row.name), boost::is_any_of("-")));
  const auto pass = [&call, name](const std::string& value) {
    call.options.emplace_back(name, value);
  };
  if (row.is == kind::flag) {
    command.add_flag_callback(
        row.name, [pass] { pass("yes"); }, row.help);
    return;
  }
  CLI::Option& option =
      *command.add_option_function<std::string>(row.name, pass, row.help)->type_name(row.type);
  if (row.is == kind::required) option.required();
  if (row.is == kind::number) option.check(whole_number_between(1, row.most));
}

void add_input_of_put(CLI::App& command, const std::shared_ptr<local_call>& call) {
  auto& file = *command.add_option("FILE", call->input, "The file; - is stdin");
  auto& data = *command
                    .add_option_function<std::string>(
                        "--data",
                        [call](const std::string& name) {
                          call->input = name;
                          call->options.emplace_back("data", "yes");
                        },
                        "A file with a payload in each line: they are put in turn, until --records "
                        "or Ctrl-C")
                    ->type_name("FILE")
                    ->excludes(&file);
  command.get_option("--records")->needs(&data);
  command.get_option("--key-separator")->excludes(command.get_option("--partition-key"));
}

void add_passed_on(CLI::App& local, const passed_on& row, invocation& run) {
  CLI::App& command = add_command(local, row.text, child_use::none, run);
  auto call = std::make_shared<local_call>();
  call->command = row.text.name;
  call->needs = row.needs;
  call->changes_state = row.changes_state;
  command
      .add_option("--directory", call->directory,
                  "The folder of its state and logs\n"
                  "[$XDG_STATE_HOME/kclxx/local, or ~/.local/state/kclxx/local]")
      ->type_name("DIR")
      ->envname("KCLXX_LOCAL_DIRECTORY");
  for (const passed_option& option : row.options) add_passed_option(command, option, *call);
  if (row.text.name == "put") add_input_of_put(command, call);
  command.callback([call, &run] {
    if (call->command == "put" && call->input.empty()) {
      throw CLI::RequiredError("FILE or --data FILE");
    }
    if (call->command != "leases") run_local(*call);
    run.status = show_local_leases(*call);
  });
}

void add_local_fetch(CLI::App& local, invocation& run) {
  CLI::App& command = add_command(
      local,
      {"fetch",
       "Downloads what the other commands need, with npm and Maven, into the user's cache, and\n"
       "prints the folders. The other commands do this when something is missing.",
       "kclxx local fetch"},
      child_use::none, run);
  command.callback([] {
    for (const std::string& folder : fetch_local()) std::cout << folder << "\n";
  });
}

}  // namespace

void add_local_command(CLI::App& app, invocation& run) {
  CLI::App& local = *app.add_subcommand(
      "local", "Starts and stops a local Kinesis and DynamoDB, puts records, shows leases.");
  local.require_subcommand(1);
  local.footer(
      "kclxx local COMMAND --help has an example of each. To begin with:\n"
      "  eval \"$(kclxx local start)\"\n"
      "  kclxx local create-stream words --shards 2\n"
      "  kclxx local put words README.md\n"
      "  kclxx local shards words\n"
      "  kclxx local stop");
  add_local_fetch(local, run);
  for (const passed_on& row : passed_on_commands) add_passed_on(local, row, run);
}

}  // namespace kclxx::host
