// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/launch.hpp"

#include <algorithm>
#include <array>
#include <cctype>
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
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/trim.hpp>

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

/// How many bytes of a line are looked at, without waiting for its end.
constexpr std::size_t head_size = 1024;

[[noreturn]] void end_java(pid_t java) {
  // As process 1 it gets no SIGKILL from its own namespace.
  ::kill(java, java == 1 ? SIGTERM : SIGKILL);
  for (;;)
    ::pause();  // a full pipe keeps Java in the call that logs, before it leaves with status 0
}

/// ": " and the text of the exception in a line, without the place where it was thrown; empty: the
/// line has no exception.
std::string cause_in(std::string_view line) {
  constexpr std::string_view begin = " java.lang.RuntimeException: ";
  const auto at = line.find(begin);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + begin.size());
  return ": " + std::string(line.substr(0, line.find(" at ")));
}

/// Judges each line of the failures as soon as it is long enough, and at its end at the latest.
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
  /// `head_` is a line "APPLICATION: MESSAGE" that properties/logback.xml hands over; the
  /// application is only there when the daemon has several streams. For most failures the daemon's
  /// own words are enough.
  void judge() {
    const auto message = head_.find(": ");
    if (message == std::string::npos) return;
    const std::string worker =
        message == 0 ? "the worker" : "the worker of " + head_.substr(0, message);
    const std::string line = head_.substr(message + 2);
    const bool is_end = line.starts_with("Unable to initialize after");
    if (line.find("leaseCounter is marked non-null but is null") != std::string::npos) {
      say("the lease table has rows of KCL 3, which KCL 2 cannot read, so " + worker +
          " takes no shards: use --kcl 3, or remove these rows "
          "(docs/host/moving.md#back-to-kcl-2)");
    } else if (is_end) {
      say(worker + " could not be initialized" + cause_in(line));
    }
    if (is_end) end_java(java_);  // it is about to leave, with status 0
  }

  void say(const std::string& failure) {
    if (failure != last_said_) std::cerr << "kclxx daemon run: " + failure + "\n" << std::flush;
    last_said_ = failure;
  }

  pid_t java_;
  std::string head_;
  bool is_judged_ = false;
  std::string last_said_;
};

[[noreturn]] void guard(int failures, pid_t java) {
  sigset_t every_signal;
  ::sigfillset(&every_signal);
  // A signal to the group is Java's: this process leaves when Java does.
  ::sigprocmask(SIG_BLOCK, &every_signal, nullptr);
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

/// A worker that the KCL cannot initialize leaves with status 0, as if all were well. This starts a
/// process beside the one that is to become Java: it explains failures in the log, and kills Java
/// before that leaves. It ends with Java.
void start_guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    cannot_set_up("a pipe", "made");
  }
  io::descriptor from_java(ends[0]);
  const io::descriptor low(ends[1]);
  // The pipe is as small as can be: a line of the failures does not fit in, so Java waits for this
  // process to read it.
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

/// An id that no other worker has, and which tells where the worker runs.
std::string new_worker_id() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "-" + random_digits(16);
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

/// Whether the user decides what is on the class path.
bool has_own_class_path(const launch_options& options) {
  return std::any_of(
      options.java_options.begin(), options.java_options.end(), [](std::string_view option) {
        return option == "-cp" || option == "-classpath" || option.starts_with("--class-path");
      });
}

/// Why only AWS's classes run; empty: those of src/host/java do. `own_jar`: their jar.
std::string why_stock(const launch_options& options,
                      const std::optional<std::filesystem::path>& own_jar) {
  if (options.is_stock) return "--stock";
  if (has_own_class_path(options)) return "the class path is yours";
  if (!own_jar) return "kclxx's were not compiled: kclxx daemon fetch needs a JDK for it";
  return is_as_compiled(*own_jar) ? "" : own_jar->string() + " is not as it was compiled";
}

struct launch_settings {
  kcl_version which = kcl_version::kcl3;  ///< for the keys of the properties
  std::string java;                       ///< the program
  std::string class_path;
  /// Why only AWS's classes run. Empty: those of src/host/java run the daemon.
  std::string why_stock;
  bool has_own_writer = false;  ///< src/host/java/BatchMessageWriter.java may write the batches
  std::vector<std::string> properties_files;  ///< one for each stream
  std::string logging_file;
  std::vector<std::string> java_options;  ///< the user's, which come after ours
  /// The text of all options that the user gives Java: ours give way to these.
  std::string user_options;
};

/// Sets the class path to the files that were compared, and to no others.
void set_class_path(const launch_options& options, launch_settings& settings) {
  std::vector<std::filesystem::path> files = jars_at(options.place, options.kcl);
  const auto own = own_jar_among(files);
  settings.why_stock = why_stock(options, own);
  settings.has_own_writer = settings.why_stock.empty() && has_tested_daemon(files);
  if (own && !settings.why_stock.empty()) std::erase(files, *own);
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

/// Splits the text of a variable as Java does: at whitespace outside of quotes, which go.
void append_words(std::vector<std::string>& words, std::string_view text) {
  std::string word;
  char quote = '\0';
  for (const char c : std::string(text) + ' ') {
    if (quote != '\0' ? c == quote : c == '"' || c == '\'') {
      quote = quote == '\0' ? c : '\0';
    } else if (quote != '\0' || std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
}

/// The user's options of Java, a line each: on the command line, in the variables that Java reads,
/// and in the files that one of these names.
std::string text_of_user_options(std::vector<std::string> words) {
  for (const char* name : {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}) {
    append_words(words, variable(name));
  }
  std::string text;
  for (const std::string& word : words) {
    text += word + '\n';
    for (const std::string_view option : {"@", "-XX:VMOptionsFile=", "-XX:Flags="}) {
      if (!word.starts_with(option)) continue;
      std::ifstream file(word.substr(option.size()));  // Java complains of one that cannot be read
      std::string content{std::istreambuf_iterator<char>(file), {}};
      std::erase_if(content, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
      text += content + '\n';
    }
  }
  return text;
}

/// The line that says which of AWS's classes run where kclxx has its own, and why. Empty: none.
std::string stock_line(const launch_settings& settings) {
  if (!settings.why_stock.empty()) return "only AWS's classes run: " + settings.why_stock;
  return settings.has_own_writer ? ""
                                 : "the daemon's own writer writes the batches: kclxx's was not "
                                   "compared with this version's";
}

launch_settings settings_for(const launch_options& options) {
  launch_settings settings;
  settings.which = options.kcl.which;
  settings.java = find_java();
  set_class_path(options, settings);
  if (options.files.size() > 1 && !settings.why_stock.empty()) {
    cannot_set_up("several streams in one process need kclxx's classes, and " +
                  stock_line(settings) +
                  "; start a process for each stream, or fetch again with a JDK");
  }
  settings.java_options = options.java_options;
  if (!options.heap.empty()) {
    settings.java_options.insert(settings.java_options.begin(), "-Xmx" + options.heap);
  }
  settings.user_options = text_of_user_options(settings.java_options);
  if (!options.logging.empty()) settings.logging_file = absolute_file(options.logging);
  return settings;
}

/// The properties that the daemon is to read. Errors: command_error, also for files that cannot be
/// together.
std::vector<named_properties> effective_properties(const launch_options& options) {
  std::vector<named_properties> streams;
  for (const std::string& file : options.files) {
    try {
      streams.push_back({file, read_properties(options, file)});
    } catch (const properties_error& error) {
      cannot_set_up((error.line() == 0 ? "" : file + ":" + std::to_string(error.line()) + ": ") +
                    error.what());
    }
    for (const diagnostic& conflict : find_conflicts(streams, options.kcl.which)) {
      cannot_set_up(file + ": " + conflict.what + ". " + conflict.why + " " + conflict.fix);
    }
  }
  return streams;
}

/// A file in memory that only this process, and what it becomes, can reach: it is gone with the
/// process, however that ends.
std::string file_in_memory(const char* name, std::string_view text) {
  const io::descriptor low(::memfd_create(name, MFD_ALLOW_SEALING));
  const int file = ::fcntl(low.get(), F_DUPFD, 3);  // stays open across exec
  if (file == -1) cannot_set_up(name, "made");
  ::fchmod(file, 0600);
  if (const auto error = io::write_all(file, text)) {
    cannot_set_up(std::string(name) + ": " + error.message());
  }
  ::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::access(path.c_str(), R_OK) == -1) {
    cannot_set_up(
        "Java gets its files by /proc, which is not mounted here: mount -t proc proc /proc");
  }
  return path;
}

/// The most that Java's heap may have, in MiB, by -Xmx or --heap; 0: a share of the memory.
std::uint64_t heap_of(const launch_options& options) {
  std::string text = options.heap;
  for (const std::string& option : options.java_options) {
    if (option.starts_with("-Xmx")) text = option.substr(4);
  }
  std::uint64_t number = 0;
  const auto* const end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return unit == 'g' || unit == 'G'   ? number * 1024
         : unit == 'm' || unit == 'M' ? number
         : unit == 'k' || unit == 'K' ? number / 1024
                                      : number / 1024 / 1024;
}

void mention_diagnostics(const launch_options& options,
                         const std::vector<named_properties>& streams, bool has_own_writer) {
  std::size_t problems = 0;
  std::string files;
  std::vector<named_properties> read;
  for (const named_properties& stream : streams) {
    read.push_back(stream);
    problems += find_problems(options, read, {{}, "", !has_own_writer}).size();
    files += " " + stream.file;
  }
  if (problems == 0) return;
  std::cerr << "kclxx daemon run:" << files << (streams.size() == 1 ? " has " : " have ")
            << problems << (problems == 1 ? " problem" : " problems")
            << "; to list: kclxx daemon check --kcl " << options.kcl.text()
            << (options.heap.empty() ? "" : " --heap " + options.heap)
            << (options.is_stock ? " --stock" : "") << files << std::endl;
}

std::string shell_word(const std::string& text) {
  return "'" + boost::replace_all_copy(text, "'", "'\\''") + "'";
}

// Java would inherit a SIGTERM that is blocked or ignored, and never shut down gracefully.
void listen_to_sigterm() {
  std::signal(SIGTERM, SIG_DFL);
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

/// The options of Java that are ours, without those that an option in the text `given`, the user's,
/// decides. What they save was measured: docs/host/daemon.md. Java 8 knows all since its update
/// 191.
std::vector<std::string> java_options(const std::string& given) {
  // Garbage is what costs at a high rate. A call's records come in arrays of some MiB and are dead
  // after it. The serial collector takes least for them, if it does not copy the arrays, and has
  // room for several calls before it has to look at the whole heap. A young generation of more than
  // 40 MiB leaves a heap of 192 MiB no room for what survives, and each collection is then one of
  // the whole heap.
  // The full compiler pays for itself once a method has run for long. At a low rate that is never,
  // so it waits four times as long as Java would let it. The KCL's classes take more than the
  // 21 MiB at which Java otherwise begins to collect them.
  struct choice {
    std::vector<std::string> options;
    std::regex decider;  ///< what the user may write in their place, also in a file of -XX:Flags
  };
  static const std::string collector = "[+-](Use\\w+GC|AggressiveHeap)\\b";
  static const std::array choices{
      choice{{"-XX:+UseSerialGC"}, std::regex(collector)},  // Java refuses two collectors
      choice{{"-XX:MaxRAMPercentage=50"},
             std::regex("\\b(MaxRAMPercentage|MaxRAMFraction|MaxHeapSize)=")},
      choice{{"-XX:MaxNewSize=32m"},
             std::regex(collector + "|-Xmn|\\b(MaxNewSize|NewSize|NewRatio)=")},
      choice{{"-XX:PretenureSizeThreshold=1m"},
             std::regex(collector + "|\\bPretenureSizeThreshold=")},
      // Java refuses a MaxHeapFreeRatio below it.
      choice{{"-XX:MinHeapFreeRatio=65"},
             std::regex(collector + "|-Xm(in|ax)f|\\bM(in|ax)HeapFreeRatio=")},
      choice{{"-XX:MetaspaceSize=96m"}, std::regex("\\bMetaspaceSize=")},
      choice{{"-XX:Tier4InvocationThreshold=20000", "-XX:Tier4MinInvocationThreshold=4000",
              "-XX:Tier4CompileThreshold=60000", "-XX:Tier4BackEdgeThreshold=160000"},
             std::regex("\\b(Tier4\\w+|CompileThresholdScaling)=")}};
  std::vector<std::string> chosen;
  for (const choice& ours : choices) {
    // A mention that is none, in a comment, costs but our choice.
    if (std::regex_search(given, ours.decider)) continue;
    chosen.insert(chosen.end(), ours.options.begin(), ours.options.end());
  }
  return chosen;
}

/// Sets the worker id, unless the properties have one under either of the two keys that KCL 2.x and
/// 3.x have for it. It has one key afterwards.
void settle_worker_id(properties& file, kcl_version kcl) {
  std::string id = value_of(file, "workerId", kcl);
  if (id.empty()) id = value_of(file, "workerIdentifier", kcl);
  if (id.empty()) id = new_worker_id();
  std::erase_if(file, [](const property& entry) {
    return entry.key == "workerId" || entry.key == "workerIdentifier";
  });
  file.push_back({"workerId", std::move(id), 0, ""});
}

/// The stream's name; with KCL 2.x and 3.x an ARN comes first. Empty: there is none.
std::string stream_name(const properties& file, kcl_version kcl) {
  const std::string arn = value_of(file, "streamArn", kcl);
  const auto slash = arn.find('/');
  return slash == std::string::npos ? value_of(file, "streamName", kcl) : arn.substr(slash + 1);
}

struct launch {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< in addition
};

/// `streams`: what each of the files will contain, with its worker id settled. The environment is
/// what the library reads: the names that shard_context shows. With several streams
/// src/host/java/StreamProcessor.java gives each child its own.
launch compose(const launch_settings& settings, const std::vector<named_properties>& streams) {
  launch result;
  std::vector<std::string>& command = result.command;
  // file.encoding: below JDK 18 the daemon would otherwise talk to its children in the system's
  // character set.
  command = {settings.java, "-Dfile.encoding=UTF-8"};
  const std::vector<std::string> chosen = java_options(settings.user_options);
  command.insert(command.end(), chosen.begin(), chosen.end());
  if (settings.has_own_writer) command.emplace_back("-Dkclxx.writer=true");
  command.insert(command.end(), {"-cp", settings.class_path});
  command.insert(command.end(), settings.java_options.begin(), settings.java_options.end());
  command.push_back(std::string("software.amazon.kinesis.multilang.") +
                    (settings.why_stock.empty() ? "StreamsDaemon" : "MultiLangDaemon"));
  const auto value = [&](const named_properties& stream, std::string_view key) {
    return value_of(stream.content, key, settings.which);
  };
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams.size() > 1) {
      command.insert(command.end(), {"-a", value(streams[i], "applicationName")});
    }
    command.insert(command.end(), {"-p", settings.properties_files[i]});
  }
  command.insert(command.end(), {"-l", settings.logging_file});
  if (streams.size() > 1) return result;
  const auto show = [&](const char* name, const std::string& text) {
    if (!text.empty()) result.environment.emplace_back(name, text);
  };
  show("KCLXX_APPLICATION_NAME", value(streams.front(), "applicationName"));
  show("KCLXX_STREAM_NAME", stream_name(streams.front().content, settings.which));
  show("KCLXX_WORKER_ID", value(streams.front(), "workerId"));
  return result;
}

}  // namespace

properties read_properties(const launch_options& options, const std::string& file) {
  properties file_properties = with_overrides(parse_properties(text_of_file(file)),
                                              overrides_in(environment()), options.kcl.which);
  for (const property& entry : file_properties) {
    if ((entry.key + entry.value).find('\0') == std::string::npos) continue;
    // A message ends at its first NUL.
    throw properties_error(entry.line, std::string(entry.key.c_str()) +
                                           " has a NUL, which nothing that it names can have");
  }
  return file_properties;
}

std::vector<diagnostic> find_problems(const launch_options& options,
                                      const std::vector<named_properties>& streams,
                                      reader_answer answer) {
  circumstances where{look_at_program,
                      !variable("AWS_REGION").empty(),
                      options.kcl,
                      heap_of(options),
                      std::move(answer.readings),
                      answer.has_stock_writer,
                      0};
  if (options.is_without_program) where.look = look_at_name;
  for (const reading& said : where.readings) {
    if (said.kind == "heap" && where.heap_mib == 0) where.heap_mib = std::stoull(said.text);
  }
  for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
    where.heap_of_others += heap_of_shards(streams[i].content, where);
  }
  std::vector<diagnostic> found = check(streams.back().content, where);
  for (diagnostic& conflict : find_conflicts(streams, options.kcl.which)) {
    found.push_back(std::move(conflict));
  }
  return found;
}

reader_answer ask_reader(const launch_options& options, const properties& file_properties) {
  reader_answer answer;
  try {
    std::vector<std::filesystem::path> files = jars_at(options.place, options.kcl);
    const auto reader = own_jar_among(files);
    answer.has_stock_writer = !why_stock(options, reader).empty() || !has_tested_daemon(files);
    if (!reader) {
      answer.why_not =
          "kclxx daemon fetch found no JDK to compile the daemon's reader with; on Debian: "
          "apt-get install openjdk-17-jdk-headless, and fetch again";
      return answer;
    }
    std::vector<std::string> command{"env"};
    // The reader needs a region. Where the daemon will find one is not known here: a finding says
    // so.
    if (variable("AWS_REGION").empty() &&
        value_of(file_properties, "regionName", options.kcl.which).empty()) {
      command.emplace_back("AWS_REGION=us-east-1");
    }
    command.push_back(find_java());
    const auto chosen = java_options(text_of_user_options(options.java_options));
    command.insert(command.end(), chosen.begin(), chosen.end());
    if (!options.heap.empty()) command.push_back("-Xmx" + options.heap);
    command.insert(
        command.end(),
        {"-cp", class_path(files), "software.amazon.kinesis.multilang.config.PropertiesReader",
         file_in_memory("properties", write_properties(file_properties))});
    const program_result java = run_program(command);
    answer.readings = parse_readings(java.output);
    if (answer.readings.empty()) {
      static const std::regex announcement("(NOTE: )?Picked up [^\n]*\n");
      std::string said = std::regex_replace(java.output + java.error, announcement, "");
      boost::trim(said);
      boost::replace_all(said, "\n", "; ");
      answer.why_not = "Java says: " + said;
    }
  } catch (const command_error& failure) {
    answer.why_not = failure.what();
  }
  return answer;
}

void run_daemon(const launch_options& options) {
  std::vector<named_properties> streams = effective_properties(options);
  launch_settings settings = settings_for(options);
  mention_diagnostics(options, streams, settings.has_own_writer);
  if (const std::string line = stock_line(settings); !line.empty()) {
    std::cerr << "kclxx daemon run: " << line << std::endl;
  }
  for (named_properties& stream : streams) {
    settle_worker_id(stream.content, options.kcl.which);
    settings.properties_files.push_back(
        file_in_memory("properties", write_properties(stream.content)));
  }
  if (settings.logging_file.empty()) {
    settings.logging_file = file_in_memory("logging", embedded::logback);
    start_guard();
  }
  launch daemon = compose(settings, streams);
  for (const auto& [name, value] : daemon.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv(io::daemon_variable, io::to_text(io::this_process()).c_str(), 1);
  listen_to_sigterm();
  exec(std::move(daemon.command));
}

void print_daemon_command(const launch_options& options) {
  // A shell need not know a descriptor of two digits.
  constexpr std::size_t first_descriptor = 3, max_streams = 6;
  if (options.files.size() > max_streams) {
    cannot_set_up("a printed command takes at most " + std::to_string(max_streams) +
                  " streams: use kclxx daemon run");
  }
  std::vector<named_properties> streams = effective_properties(options);
  launch_settings settings = settings_for(options);
  std::string documents;
  std::string ends;
  const auto here_document = [&](const std::string& text) {
    const std::string number = std::to_string(first_descriptor + settings.properties_files.size());
    ends += " " + number + "<<'END_OF_" + number + "'";
    documents += text + "END_OF_" + number + "\n";
    return "/dev/fd/" + number;
  };
  for (named_properties& stream : streams) {
    settle_worker_id(stream.content, options.kcl.which);
    settings.properties_files.push_back(here_document(write_properties(stream.content)));
  }
  if (settings.logging_file.empty()) {
    settings.logging_file = here_document(std::string(embedded::logback));
  }
  const launch daemon = compose(settings, streams);
  const std::string stock = stock_line(settings);
  std::string text = "# " + (stock.empty() ? "kclxx's classes run the daemon" : stock) + "\n";
  for (const auto& [name, value] : daemon.environment) {
    text += "export " + name + "=" + shell_word(value) + "\n";
  }
  text += "exec";  // signals to the shell's process reach Java
  for (const std::string& word : daemon.command) text += " " + shell_word(word);
  std::cout << text + ends + "\n" + documents << std::flush;
}

}  // namespace kclxx::host
