// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/launch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/algorithm/string/replace.hpp>

#include "host/packages.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "io/process_identity.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/process/program.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

/// So much of a line is looked at, without waiting for the rest of it.
constexpr std::size_t head_size = 1024;

[[noreturn]] void end_java(pid_t java) {
  // As process 1 it gets no SIGKILL from its own namespace.
  ::kill(java, java == 1 ? SIGTERM : SIGKILL);
  for (;;)
    ::pause();  // what is not read keeps Java in the call that logs it, before it leaves with 0
}

class failure_reader {
 public:
  explicit failure_reader(pid_t java) : java_(java) {}

  void take(std::string_view text) {
    for (const char c : text) {
      if (c != '\n') {
        if (head_.size() < head_size) head_ += c;
        if (head_.size() < head_size || is_judged_) continue;
      }
      if (!is_judged_) judge();
      is_judged_ = c != '\n';
      if (!is_judged_) head_.clear();
    }
  }

 private:
  void judge() {
    const auto failure = explain(head_);
    if (!failure) return;
    if (failure->what != last_) {
      std::cerr << "kclxx daemon run: " + failure->what + "\n" << std::flush;
    }
    last_ = failure->what;
    if (failure->is_end) end_java(java_);
  }

  pid_t java_;
  std::string head_;
  bool is_judged_ = false;
  std::string last_;
};

[[noreturn]] void guard(int failures, pid_t java) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);  // of all signals to the group: it leaves with Java
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != java) ::_exit(0);
  failure_reader reader(java);
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t count = ::read(failures, chunk.data(), chunk.size());
    if (count <= 0) ::_exit(0);
    reader.take({chunk.data(), static_cast<std::size_t>(count)});
  }
}

/// What was thrown, without the place; blank when the line has nothing of it.
std::string cause_in(std::string_view line) {
  constexpr std::string_view begin = " java.lang.RuntimeException: ";
  const auto at = line.find(begin);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + begin.size());
  return ": " + std::string(line.substr(0, line.find(" at ")));
}

/// A worker that the KCL cannot initialize leaves with status 0, as if all were well. This starts a
/// process beside the one that is to become Java: it explains failures in the log, and kills Java
/// before that leaves. It ends with Java.
void start_guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    cannot_set_up(std::string("a pipe cannot be made: ") + std::strerror(errno));
  }
  io::descriptor from_java(ends[0]);
  const io::descriptor low(ends[1]);
  // The smallest that there is: a line of the failures does not fit in.
  ::fcntl(from_java.get(), F_SETPIPE_SZ, 1);
  const int to_guard = ::fcntl(low.get(), F_DUPFD, 3);  // stays open across exec
  const pid_t java = ::getpid();
  const pid_t child = to_guard == -1 ? -1 : ::fork();
  if (child == -1) cannot_set_up(std::string("no guard can be started: ") + std::strerror(errno));
  if (child == 0) {
    ::close(to_guard);
    ::close(low.get());
    guard(from_java.get(), java);
  }
  // properties/logback.xml writes the failures of a worker there.
  ::setenv("KCLXX_FAILURES", ("/proc/self/fd/" + std::to_string(to_guard)).c_str(), 1);
}

/// Unlike any other worker's, and still telling where the worker runs.
std::string new_worker_id() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  std::string id = std::string(host.data()) + "-";
  for (int i = 0; i < 16; ++i) id += "0123456789abcdef"[random() % 16];
  return id;
}

/// Java decodes its command line in the character set of the locale.
void refuse_what_java_cannot_read(const std::string& path) {
  std::setlocale(LC_CTYPE, "");
  const bool is_ascii = std::all_of(path.begin(), path.end(),
                                    [](char c) { return static_cast<signed char>(c) >= 0; });
  if (is_ascii || MB_CUR_MAX > 1) return;
  cannot_set_up(path + " is not in ASCII, and Java does not find it in this locale: set " +
                "LC_ALL=C.UTF-8");
}

/// Empty: ours can write the batches. `has_own_jar`: beside the files.
std::string why_stock_writer(const launch_options& options, bool has_own_jar,
                             const std::vector<std::filesystem::path>& files) {
  if (options.has_stock_writer) return "--stock-writer";
  const bool is_own_path = std::any_of(
      options.java_options.begin(), options.java_options.end(), [](std::string_view one) {
        return one == "-cp" || one == "-classpath" || one.starts_with("--class-path");
      });
  if (is_own_path) return "the class path is yours";
  if (!has_own_jar) return "kclxx's was not compiled: kclxx daemon fetch needs a JDK for it";
  return has_tested_daemon(files) ? "" : "kclxx's was not compared with this version's";
}

/// Of the files that were compared, and of no others. With our own jar the daemon starts in
/// src/host/java/OneStreamDaemon.java, which reads the properties once more.
void set_class_path(const launch_options& options, launch_settings& settings) {
  std::vector<std::filesystem::path> files = jars_at(options.place, options.kcl);
  const auto own = own_jar_among(files);
  settings.why_stock_writer = why_stock_writer(options, own.has_value(), files);
  if (own) {
    const bool is_first =
        settings.why_stock_writer.empty();  // a class of the daemon's is there, too
    std::erase(files, *own);
    files.insert(is_first ? files.begin() : files.end(), *own);
    settings.main_class = "software.amazon.kinesis.multilang.config.OneStreamDaemon";
  }
  settings.class_path = class_path(files);
  refuse_what_java_cannot_read(settings.class_path.substr(0, settings.class_path.find(':')));
}

std::string absolute_file(const std::string& name) {
  if (::access(name.c_str(), R_OK) == -1)
    cannot_set_up(name + " cannot be read: " + std::strerror(errno));
  std::string path = std::filesystem::absolute(name).string();
  refuse_what_java_cannot_read(path);
  return path;
}

/// The user's options of Java, as they are written: on the command line, in the variables that Java
/// reads, and in the files that one of these names.
std::string text_of_user_options(const std::vector<std::string>& command_line) {
  std::string text;
  for (const std::string& option : command_line) text += option + '\n';
  for (const char* name : {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}) {
    text += variable(name) + '\n';
  }
  static const std::regex named_file(
      R"((?:^|[\s"'])(?:@|-XX:VMOptionsFile=|-XX:Flags=)([^\s"']+))");
  const std::string options = text;
  for (std::sregex_iterator file(options.begin(), options.end(), named_file), end; file != end;
       ++file) {
    std::ifstream content((*file)[1].str());  // Java complains of one that cannot be read
    text.append(std::istreambuf_iterator<char>(content), {}).push_back('\n');
  }
  return text;
}

launch_settings settings_for(const launch_options& options) {
  launch_settings settings;
  settings.which = options.which();
  settings.java = find_java();
  set_class_path(options, settings);
  settings.java_options = options.java_options;
  if (!options.heap.empty()) {
    settings.java_options.insert(settings.java_options.begin(), "-Xmx" + options.heap);
  }
  settings.user_options = text_of_user_options(settings.java_options);
  settings.is_busy = options.is_busy;
  if (!options.logging.empty()) settings.logging_file = absolute_file(options.logging);
  return settings;
}

/// What the daemon is to read.
properties effective_properties(const launch_options& options) {
  try {
    return read_properties(options);
  } catch (const properties_error& error) {
    cannot_set_up(
        (error.line() == 0 ? "" : options.file + ":" + std::to_string(error.line()) + ": ") +
        error.what());
  }
}

/// A file in memory that only this process, and what it becomes, can reach: it is gone with the
/// process, however that ends.
std::string file_in_memory(const char* name, std::string_view text) {
  const io::descriptor low(::memfd_create(name, MFD_ALLOW_SEALING));
  const int file = ::fcntl(low.get(), F_DUPFD, 3);  // stays open across exec
  if (file == -1) cannot_set_up(std::string(name) + " cannot be made: " + std::strerror(errno));
  ::fchmod(file, 0600);
  if (const auto error = io::write_all(file, text)) {
    cannot_set_up(std::string(name) + ": " + error.message());
  }
  ::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return "/proc/self/fd/" + std::to_string(file);
}

/// In MiB, of -Xmx or --heap; 0: Java takes a share of the memory.
std::uint64_t heap_of(const launch_options& options) {
  std::string text = options.heap;
  for (const std::string& one : options.java_options) {
    if (one.starts_with("-Xmx")) text = one.substr(4);
  }
  std::uint64_t number = 0;
  const auto* const end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return unit == 'g' || unit == 'G'   ? number * 1024
         : unit == 'm' || unit == 'M' ? number
         : unit == 'k' || unit == 'K' ? number / 1024
                                      : number / 1024 / 1024;
}

void mention_diagnostics(const launch_options& options, const properties& all,
                         bool has_stock_writer) {
  const auto found = find_problems(options, all, {{}, "", has_stock_writer});
  if (found.empty()) return;
  std::cerr << "kclxx daemon run: " << options.file << " has " << found.size()
            << (found.size() == 1 ? " problem" : " problems")
            << "; to list: kclxx daemon check --kcl " << options.kcl.text()
            << (options.heap.empty() ? "" : " --heap " + options.heap)
            << (options.has_stock_writer ? " --stock-writer " : " ") << options.file << std::endl;
}

std::string shell_word(const std::string& text) {
  return "'" + boost::replace_all_copy(text, "'", "'\\''") + "'";
}

/// Empty: kclxx's own.
std::string stock_writer_line(const launch_settings& settings) {
  return settings.why_stock_writer.empty()
             ? ""
             : "the daemon's own writer writes the batches: " + settings.why_stock_writer;
}

/// Options of ours, without those that a mention in the user's text decides. A mention that is
/// none, in a comment, costs but our choice.
std::vector<std::string> without_decided(std::vector<std::string> ours, const std::string& given) {
  // An option of ours, and what the user may write in its place.
  static const std::vector<std::pair<std::string_view, std::regex>> deciders = [] {
    std::vector<std::pair<std::string_view, std::regex>> rows;
    rows.emplace_back("GC", "-XX:[+-]Use\\w+GC\\b");  // Java refuses two collectors
    rows.emplace_back("MaxRAMPercentage", "-XX:(MaxRAMPercentage|MaxRAMFraction|MaxHeapSize)=");
    rows.emplace_back("New", "-Xmn|-XX:(MaxNewSize|NewSize|NewRatio)=");
    rows.emplace_back("TieredStopAtLevel", "-XX:(TieredStopAtLevel=|[+-]TieredCompilation)|-Xint");
    rows.emplace_back("MetaspaceSize", "-XX:MetaspaceSize=");
    return rows;
  }();
  std::erase_if(ours, [&](const std::string& option) {
    return std::any_of(deciders.begin(), deciders.end(), [&](const auto& row) {
      return option.find(row.first) != std::string::npos && std::regex_search(given, row.second);
    });
  });
  return ours;
}

// A blocked or ignored SIGTERM is inherited; Java would keep it so, and never shut down gracefully.
void listen_to_sigterm() {
  std::signal(SIGTERM, SIG_DFL);
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

}  // namespace

std::optional<start_failure> explain(std::string_view line) {
  const bool is_end = line.starts_with("Unable to initialize after");
  if (line.find("leaseCounter is marked non-null but is null") != std::string_view::npos) {
    return start_failure{
        "the lease table has rows of KCL 3, which KCL 2 cannot read, so this worker takes no "
        "shards: use --kcl 3, or remove these rows (docs/host/kcl-versions.md#back-to-kcl-2)",
        is_end};
  }
  if (!is_end) return std::nullopt;
  return start_failure{"the worker could not be initialized" + cause_in(line), true};
}

std::vector<std::string> java_options(bool is_busy, const std::string& given) {
  // Garbage is what costs at a high rate: a call's records are text of several times their size,
  // and dead after it. G1 treats such large objects like old ones; these two collectors do not. The
  // full compiler pays for itself once a method has run for long, which at a low rate is never. The
  // KCL's classes take more than the 21 MiB at which Java otherwise begins to collect them.
  const std::vector<std::string> ours =
      is_busy ? std::vector<std::string>{"-XX:+UseParallelGC", "-XX:MaxRAMPercentage=50",
                                         "-XX:NewRatio=1", "-XX:MetaspaceSize=96m"}
              : std::vector<std::string>{"-XX:+UseSerialGC", "-XX:MaxRAMPercentage=50",
                                         "-XX:MaxNewSize=64m", "-XX:TieredStopAtLevel=1",
                                         "-XX:MetaspaceSize=96m"};
  return without_decided(ours, given);
}

std::string settle_worker_id(properties& all, kcl_version kcl, const std::string& made) {
  std::string id = value_of(all, "workerId", kcl);
  if (id.empty()) id = value_of(all, "workerIdentifier", kcl);
  if (id.empty()) id = made;
  std::erase_if(all, [](const property& one) {
    return one.key == "workerId" || one.key == "workerIdentifier";
  });
  all.push_back({"workerId", id, 0, "worker id"});
  return id;
}

std::string stream_name(const properties& all, kcl_version kcl) {
  const std::string arn = value_of(all, "streamArn", kcl);
  const auto slash = arn.find('/');
  return slash == std::string::npos ? value_of(all, "streamName", kcl) : arn.substr(slash + 1);
}

launch compose(const launch_settings& settings, const properties& all) {
  launch made;
  std::vector<std::string>& command = made.command;
  // file.encoding: below JDK 18 the daemon would otherwise talk to its children in the system's
  // character set.
  command = {settings.java, "-Dfile.encoding=UTF-8"};
  const std::vector<std::string> chosen = java_options(settings.is_busy, settings.user_options);
  command.insert(command.end(), chosen.begin(), chosen.end());
  if (settings.why_stock_writer.empty()) command.emplace_back("-Dkclxx.writer=true");
  command.insert(command.end(), {"-cp", settings.class_path});
  command.insert(command.end(), settings.java_options.begin(), settings.java_options.end());
  command.insert(command.end(), {settings.main_class, "-p", settings.properties_file, "-l",
                                 settings.logging_file});
  const auto show = [&](const char* name, const std::string& value) {
    if (!value.empty()) made.environment.emplace_back(name, value);
  };
  show("KCLXX_APPLICATION_NAME", value_of(all, "applicationName", settings.which));
  show("KCLXX_STREAM_NAME", stream_name(all, settings.which));
  show("KCLXX_WORKER_ID", value_of(all, "workerId", settings.which));
  return made;
}

properties read_properties(const launch_options& options) {
  properties all = with_overrides(parse_properties(text_of_file(options.file)),
                                  overrides_in(environment()), options.which());
  for (const property& one : all) {
    if ((one.key + one.value).find('\0') == std::string::npos) continue;
    throw properties_error(one.line, one.key + " has a NUL, which nothing that it names can have");
  }
  return all;
}

std::vector<diagnostic> find_problems(const launch_options& options, const properties& all,
                                      reader_answer answer) {
  circumstances where{look_at_program,  !variable("AWS_REGION").empty(), options.kcl,
                      heap_of(options), std::move(answer.readings),      answer.has_stock_writer};
  if (options.is_without_program) where.look = look_at_name;
  for (const reading& one : where.readings) {
    if (one.kind == "heap" && where.heap_mib == 0) where.heap_mib = std::stoull(one.text);
  }
  return check(all, where);
}

reader_answer ask_reader(const launch_options& options, const properties& all) {
  reader_answer answer;
  try {
    std::vector<std::filesystem::path> files = jars_at(options.place, options.kcl);
    const auto reader = own_jar_among(files);
    answer.has_stock_writer = !why_stock_writer(options, reader.has_value(), files).empty();
    if (!reader) {
      answer.why_not =
          "kclxx daemon fetch found no JDK to compile the daemon's reader with; on Debian: "
          "apt-get install openjdk-17-jdk-headless, and fetch again";
      return answer;
    }
    std::vector<std::string> command{"env"};
    // Where it comes from on the machine of the daemon is not known here: a finding says so.
    if (variable("AWS_REGION").empty() && value_of(all, "regionName", options.which()).empty()) {
      command.emplace_back("AWS_REGION=us-east-1");
    }
    command.push_back(find_java());
    const auto chosen = java_options(false, text_of_user_options(options.java_options));
    command.insert(command.end(), chosen.begin(), chosen.end());
    if (!options.heap.empty()) command.push_back("-Xmx" + options.heap);
    command.insert(command.end(), {"-cp", class_path(files),
                                   "software.amazon.kinesis.multilang.config.PropertiesReader",
                                   file_in_memory("properties", write_properties(all))});
    const program_result made = run_program(command);
    answer.readings = parse_readings(made.output);
    const std::string said = made.output + made.error;
    if (answer.readings.empty()) answer.why_not = "Java says: " + said.substr(0, said.find('\n'));
  } catch (const command_error& failure) {
    answer.why_not = failure.what();
  }
  return answer;
}

void run_daemon(const launch_options& options) {
  properties all = effective_properties(options);
  launch_settings settings = settings_for(options);
  mention_diagnostics(options, all, !settings.why_stock_writer.empty());
  if (const std::string line = stock_writer_line(settings); !line.empty()) {
    std::cerr << "kclxx daemon run: " << line << std::endl;
  }
  settle_worker_id(all, options.which(), new_worker_id());
  settings.properties_file = file_in_memory("properties", write_properties(all));
  if (settings.logging_file.empty()) {
    settings.logging_file = file_in_memory("logging", embedded::logback);
    start_guard();
  }
  launch made = compose(settings, all);
  for (const auto& [name, value] : made.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv(io::daemon_variable, io::to_text(io::this_process()).c_str(), 1);
  listen_to_sigterm();
  exec(std::move(made.command));
}

void print_daemon_command(const launch_options& options) {
  properties all = effective_properties(options);
  launch_settings settings = settings_for(options);
  // OneStreamDaemon reads the properties twice, and a here-document can be read once.
  settings.main_class = launch_settings().main_class;
  settle_worker_id(all, options.which(), new_worker_id());
  settings.properties_file = "/dev/fd/3";
  std::string ends = " 3<<'END_OF_3'";
  std::string files = write_properties(all) + "END_OF_3\n";
  if (settings.logging_file.empty()) {
    settings.logging_file = "/dev/fd/4";
    ends += " 4<<'END_OF_4'";
    files += std::string(embedded::logback) + "END_OF_4\n";
  }
  const launch made = compose(settings, all);
  const std::string writer = stock_writer_line(settings);
  std::string text = "# " + (writer.empty() ? "kclxx's writer writes the batches" : writer) + "\n";
  for (const auto& [name, value] : made.environment) {
    text += "export " + name + "=" + shell_word(value) + "\n";
  }
  text += "exec";  // signals to the shell's process reach Java
  for (const std::string& word : made.command) text += " " + shell_word(word);
  std::cout << text + ends + "\n" + files << std::flush;
}

}  // namespace kclxx::host
