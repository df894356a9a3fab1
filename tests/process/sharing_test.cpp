// SPDX-License-Identifier: Apache-2.0
// kclxx-share: one process of test_child for several shards. The daemon is this process.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <variant>
#include <vector>

#include "io/descriptor.hpp"
#include "process/child_under_test.hpp"
#include "sharing/handed_shard.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace kclxx::sharing;
using namespace std::chrono_literals;
using kclxx::io::descriptor;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;
using launched = std::unique_ptr<scripted_daemon>;

constexpr int resident_gone = 17;
constexpr std::size_t descriptors_of_stuck = 5;  // of a session whose callback does not return
const std::string alone = "serves this shard alone";

bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto state = text.find_last_of(')') + 2;
  return text.size() > state && text[state] != 'Z';
}

std::size_t count_of(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}
std::size_t descriptors_of(pid_t process) {
  return count_of("/proc/" + std::to_string(process) + "/fd");
}
std::size_t threads_of(pid_t process) {
  return count_of("/proc/" + std::to_string(process) + "/task");
}

/// A machine with a temporary folder of its own, and launchers on it.
class machine {
 public:
  machine() {
    std::string name = (fs::temp_directory_path() / "kclxx-sharing-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~machine() {
    for (const pid_t one : started()) {
      if (is_running(one)) ::kill(one, SIGKILL);
    }
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }
  /// Where launchers and residents meet.
  [[nodiscard]] fs::path folder() const {
    return path_ / ("kclxx-share-" + std::to_string(::geteuid()));
  }
  [[nodiscard]] std::size_t sockets() const {
    return fs::exists(folder()) ? count_of(folder()) : 0;
  }
  [[nodiscard]] fs::path socket() const { return fs::directory_iterator(folder())->path(); }

  /// A launcher with this command, for a shard of this stream.
  [[nodiscard]] launched start(const std::string& stream, words command = {child, "manual"},
                               const words& environment = {}) const {
    command.insert(command.begin(), KCLXX_SHARE);
    words all = environment_of(stream);
    all.insert(all.begin(), environment.begin(), environment.end());
    return std::make_unique<scripted_daemon>(command,
                                             scripted_daemon::start_options{"", std::move(all)});
  }
  [[nodiscard]] words environment_of(const std::string& stream) const {
    return {"TMPDIR=" + path_.string(),
            "XDG_RUNTIME_DIR=",
            "RUNTIME_DIRECTORY=",
            "JOURNAL=" + (path_ / "journal").string(),
            "LATE=" + (path_ / "late").string(),
            "KCLXX_STREAM_NAME=" + stream};
  }
  [[nodiscard]] launched initialized(const std::string& stream, words command = {child, "manual"},
                                     const words& environment = {}) const {
    launched one = start(stream, std::move(command), environment);
    kclxx::test::start(*one);
    return one;
  }

  /// The processes in which main began.
  [[nodiscard]] std::vector<pid_t> started() const { return processes_with(" start"); }
  /// The process that serves the shard of this stream.
  [[nodiscard]] pid_t process_of(const std::string& stream) const {
    const auto found = processes_with(" of " + stream);
    REQUIRE(found.size() == 1);
    return found.front();
  }
  [[nodiscard]] std::string journal() const {
    std::ifstream in(path_ / "journal");
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  [[nodiscard]] std::vector<pid_t> processes_with(const std::string& end) const {
    std::vector<pid_t> all;
    std::istringstream lines(journal());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(end)) all.push_back(std::stoi(line));
    }
    return all;
  }

  fs::path path_;
};

/// What a process holds.
class footprint {
 public:
  explicit footprint(pid_t process)
      : process_(process), threads_(threads_of(process)), descriptors_(descriptors_of(process)) {}
  /// That it holds it again, soon. A callback that does not return keeps a thread, and what wakes
  /// it.
  void must_come_back(std::size_t stuck = 0) const {
    const bool came_back = comes_true([&] {
      const std::size_t now = descriptors_of(process_);
      return threads_of(process_) == threads_ + stuck && now >= descriptors_ &&
             now <= descriptors_ + stuck * descriptors_of_stuck;
    });
    CAPTURE(stuck, threads_, threads_of(process_), descriptors_, descriptors_of(process_));
    CHECK(came_back);
  }

 private:
  pid_t process_;
  std::size_t threads_;
  std::size_t descriptors_;
};

/// That the shard is served, to its end.
void must_be_served(scripted_daemon& shard) {
  shard.records({"a"}, 10);
  shard.expect_status("processRecords");
  shard.close_input();
  CHECK(shard.wait_exit() == 0);
}

void must_be_served_alone(scripted_daemon& shard, const std::string& reason) {
  start(shard);
  must_be_served(shard);
  const std::string said = shard.stderr_so_far();
  CAPTURE(said);
  CHECK(contains(said, reason));
  CHECK(count(said, "kclxx-share warning: ") == 1);
  CHECK(count(said, alone) == 1);
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

descriptor bind_at(const fs::path& path) {
  const sockaddr_un address = address_of(path);
  descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

/// What a resident would listen with.
descriptor listen_at(const fs::path& path) {
  descriptor socket = bind_at(path);
  REQUIRE(::listen(socket.get(), 16) == 0);
  return socket;
}

descriptor accept_at(const descriptor& listening) {
  descriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted.is_open());
  return accepted;
}

process_identity this_process() {
  process_identity self;
  self.id = static_cast<std::uint64_t>(::getpid());
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.find_last_of(')') + 2));
  for (int i = 3; i < 22; ++i) fields >> text;
  fields >> self.start;
  return self;
}

/// What a launcher has sent. It is there when this is called, or soon.
handed_shard receive_at(const descriptor& connection) {
  char byte = 0;
  REQUIRE(::recv(connection.get(), &byte, 1, MSG_PEEK) == 1);
  auto received = receive_shard(connection.get(), this_process());
  REQUIRE(std::holds_alternative<handed_shard>(received));
  return std::move(std::get<handed_shard>(received));
}

/// A launcher, played: connected to the resident.
descriptor connect_to(const fs::path& path) {
  const sockaddr_un address = address_of(path);
  descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
  return socket;
}

/// Sends these bytes, with these descriptors.
void send_packet(const descriptor& to, const std::string& bytes, const std::vector<int>& fds) {
  std::string copy = bytes;
  iovec piece{copy.data(), copy.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  REQUIRE(::sendmsg(to.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// What a resident replies; std::nullopt: the connection has ended.
std::optional<reply_message> reply_at(const descriptor& connection) {
  reply_message reply;
  ssize_t size = -1;
  do {
    size = ::recv(connection.get(), &reply, sizeof reply, 0);
  } while (size == -1 && (errno == EINTR || errno == ECONNRESET));
  return size == sizeof reply ? std::optional(reply) : std::nullopt;
}

std::string bytes_of(const shard_message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

shard_message own_message() {
  shard_message message;
  message.daemon = this_process();
  return message;
}

/// The path of a socket whose resident was killed, with nothing there.
fs::path socket_of_killed_resident(const machine& host) {
  const launched only = host.initialized("a");
  fs::path path = host.socket();
  ::kill(host.process_of("a"), SIGKILL);
  CHECK(only->wait_exit() == resident_gone);
  return path;
}

struct pipes {
  pipes() {
    for (auto& one : ends) REQUIRE(::pipe2(one.data(), O_CLOEXEC) == 0);
  }
  ~pipes() { close(); }
  void close() {
    for (auto& one : ends) {
      for (int& fd : one) {
        if (fd != -1) ::close(std::exchange(fd, -1));
      }
    }
  }
  /// The child's ends.
  [[nodiscard]] std::vector<int> to_pass() const { return {ends[0][0], ends[1][1], ends[2][1]}; }
  std::array<std::array<int, 2>, 3> ends{};
};

}  // namespace

TEST_CASE("all shards of a daemon are served by one process, each with its own names",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("orders");
  const launched second = host.initialized("payments");
  CHECK(host.process_of("orders") == host.process_of("payments"));
  CHECK(host.started().size() == 1);
  CHECK(host.sockets() == 1);
  must_be_served(*first);
  must_be_served(*second);
  CHECK(first->rest().find_first_not_of('\n') == std::string::npos);
}

TEST_CASE("settings come from each launcher's environment", "[sharing]") {
  const machine host;
  fs::create_directory(host / "metrics");
  const words plain;
  const words special{"KCLXX_LOG=json", "KCLXX_METRICS_DIR=" + (host / "metrics").string()};
  const bool is_first_special = GENERATE(false, true);
  const words command{child, "manual"};
  const launched first = host.initialized("a", command, is_first_special ? special : plain);
  const launched second = host.initialized("b", command, is_first_special ? plain : special);
  for (const launched* one : {&first, &second}) {
    (*one)->send(R"({"action":"ping"})");
    (*one)->expect_status("ping");
  }
  scripted_daemon& with = is_first_special ? *first : *second;
  scripted_daemon& without = is_first_special ? *second : *first;
  CHECK(contains(with.await_stderr("the daemon sent an action"), R"("level":"warning")"));
  CHECK_FALSE(contains(without.await_stderr("the daemon sent an action"), R"("level")"));
  CHECK(comes_true(
      [&] { return fs::exists(host / "metrics/kclxx.unknown.shardId-000000000007.prom"); }));
}

TEST_CASE("64 launchers at once start one resident", "[sharing]") {
  const machine host;
  std::vector<launched> all;
  for (int i = 0; i < 64; ++i) all.push_back(host.start("stream-" + std::to_string(i)));
  for (const launched& one : all) start(*one);
  CHECK(host.started().size() == 1);
  for (const launched& one : all) must_be_served(*one);
}

TEST_CASE("callbacks of different shards run at the same time", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  first->records({"meet"});
  second->records({"meet"});
  first->expect_status("processRecords");
  second->expect_status("processRecords");
}

TEST_CASE("log lines lead to the shard's stderr, prints to that of the oldest shard", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  CHECK(contains(first->await_stderr("of b"), "of a"));
  second->send(R"({"action":"ping"})");
  second->expect_status("ping");
  second->await_stderr("the daemon sent an action");
  CHECK_FALSE(contains(first->stderr_so_far(), "the daemon sent an action"));

  first->close_input();
  CHECK(first->wait_exit() == 0);
  first->await_end_of_stderr();
  second->records({"cout"});
  second->expect_status("processRecords");
  second->await_stderr("partial text without a newline");

  SECTION("without a shard prints are lost, and the next shard's are seen") {
    second->close_input();
    CHECK(second->wait_exit() == 0);
    second->await_end_of_stderr();
    const launched third = host.initialized("c");
    third->await_stderr("of c");
  }
}

#ifndef KCLXX_IS_SANITIZED
TEST_CASE("a launcher that waits has given back what it does not need", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  // Its arguments and environment, the stack of one call, and the thread's structure.
  for (const launched* one : {&first, &second}) {
    CHECK(comes_true([&] { return (*one)->own_kib() <= 32; }));
    must_be_served(**one);
  }
}
#endif

#ifdef KCLXX_SHARED_CACHE
TEST_CASE("what main loads before run is there for all shards, and loaded once", "[sharing]") {
  const machine host;
  std::ofstream(host / "table") << "key=value\n";
  const words command{KCLXX_SHARED_CACHE, (host / "table").string(), (host / "output").string()};
  const launched first = host.initialized("a", command);
  fs::remove(host / "table");
  const launched second = host.initialized("b", command);
  for (const launched* one : {&first, &second}) {
    (*one)->records({"text"}, 5);
    (*one)->expect_checkpoint("5");
    (*one)->expect_status("processRecords");
  }
  std::ifstream in(host / "output");
  const std::string line = "shardId-000000000007 key value text\n";
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == line + line);
}
#endif

TEST_CASE("a callback that throws ends its shard's session and no other", "[sharing][P53]") {
  const machine host;
  const words command{child, "manual", "at_once"};
  const launched first = host.initialized("a", command);
  const launched second = host.initialized("b", command);
  first->records({"throw"});
  CHECK(first->wait_exit() == 10);
  CHECK(contains(first->stderr_so_far(), "process_records (record 1/0) failed: as told"));
  first->await_end_of_stderr();
  // What the daemon's shutdown hook does with the others.
  second->records({"async"}, 5);
  second->expect_checkpoint("5");
  second->expect_status("processRecords");
  second->answer();
  second->shutdown_requested();
  second->expect_status("shutdownRequested");
  second->close_input();
  CHECK(second->wait_exit() == 0);
}

TEST_CASE("a stuck callback ends its shard's session after the grace time, and no other",
          "[sharing][P57]") {
  const machine host;
  const words command{child, "manual", "short_grace"};
  const launched first = host.initialized("a", command);
  const launched second = host.initialized("b", command);
  first->records({"sleep"});
  first->close_input();
  CHECK(first->wait_exit() == 13);
  CHECK(contains(first->stderr_so_far(), "did not return within the grace time"));
  first->await_end_of_stderr();
  must_be_served(*second);
  const launched third = host.initialized("c", command);
  CHECK(host.process_of("c") == host.process_of("a"));
}

TEST_CASE("a callback that returns after its shard's end leaves the other shards alone",
          "[sharing][P57]") {
  const machine host;
  const words command{child, "manual", "short_grace"};
  const launched first = host.initialized("a", command);
  const footprint before(host.process_of("a"));
  const launched second = host.initialized("b", command);
  second->records({"return late"});
  second->close_input();
  CHECK(second->wait_exit() == 13);
  // Its descriptors have the numbers of those that were closed.
  const launched third = host.initialized("c", command);
  std::ofstream(host / "late") << "";
  CHECK(comes_true([&] { return contains(host.journal(), " returned"); }));
  must_be_served(*third);
  must_be_served(*host.initialized("d", command));
  before.must_come_back();
  must_be_served(*first);
}

TEST_CASE("a launcher that is killed ends its shard's session as the end of the input does",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const footprint before(host.process_of("a"));
  const launched second = host.initialized("b");
  SECTION("in a callback") {
    second->records({"wait for stop"});
    REQUIRE(comes_true([&] { return contains(host.journal(), " waits"); }));
    second->kill();
    CHECK(comes_true([&] { return contains(host.journal(), " stopped"); }));
  }
  SECTION("while idle") { second->kill(); }
  SECTION("in the middle of a line") {
    second->send_raw(R"({"action":"processRec)");
    second->kill();
  }
  second->await_end_of_stderr();
  before.must_come_back();
  must_be_served(*first);
}

TEST_CASE("when the resident dies its launchers leave with a status of their own",
          "[sharing][P59]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  const pid_t resident = host.process_of("a");
  SECTION("by kill -9") { ::kill(resident, SIGKILL); }
  SECTION("by what a callback does") { first->records({"abort"}); }
  CHECK(first->wait_exit() == resident_gone);
  CHECK(second->wait_exit() == resident_gone);
  CHECK(host.sockets() == 0);
  const launched third = host.initialized("c");
  CHECK(host.process_of("c") != resident);
  must_be_served(*third);
}

TEST_CASE("SIGTERM and its like end neither launcher nor resident", "[sharing][P32]") {
  const machine host;
  const launched first = host.initialized("a");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) {
    first->signal_group(signal);
    ::kill(host.process_of("a"), signal);
  }
  first->shutdown_requested();
  first->expect_status("shutdownRequested");
  must_be_served(*host.initialized("b"));
  first->close_input();
  CHECK(first->wait_exit() == 0);
}

TEST_CASE("the resident ends with its daemon, and leaves no socket", "[sharing]") {
  const machine host;
  const bool has_shards = GENERATE(true, false);
  std::array<int, 2> ready{};
  REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
  const pid_t daemon = ::fork();
  REQUIRE(daemon != -1);
  if (daemon == 0) {
    launched first = host.start("a");
    start(*first);
    first->records({"wait for stop"});
    launched second = host.start("b");
    start(*second);
    if (!has_shards) {
      first->close_input();
      second->close_input();
      first->wait_exit();
      second->wait_exit();
    }
    if (::write(ready[1], "", 1) == -1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  ::close(ready[1]);
  REQUIRE(host.started().size() == 1);
  const pid_t resident = host.started().front();
  CHECK(is_running(resident));
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  CHECK(comes_true([&] { return !is_running(resident); }));
  CHECK(host.sockets() == 0);
}

TEST_CASE(
    "another daemon, program, argument, variable or working directory has a resident of its own",
    "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  launched second;
  SECTION("argument") { second = host.initialized("b", {child, "manual", "at_once"}); }
  SECTION("variable") { second = host.initialized("b", {child, "manual"}, {"LANGUAGE=tlh"}); }
  SECTION("program") {
    fs::copy_file(child, host / "copy");
    second = host.initialized("b", {(host / "copy").string(), "manual"});
  }
  SECTION("working directory") {
    fs::current_path(host / "");
    second = host.initialized("b");
  }
  SECTION("daemon") {
    // The shell starts the launcher and waits for it.
    words command{"/bin/sh", "-c", "\"$0\" \"$@\"; exit $?", KCLXX_SHARE, child, "manual"};
    second = std::make_unique<scripted_daemon>(
        command, scripted_daemon::start_options{"", host.environment_of("b")});
    start(*second);
  }
  CHECK(host.process_of("a") != host.process_of("b"));
  must_be_served(*second);
  must_be_served(*first);
}

TEST_CASE("a program that is replaced on disk has a new resident; the old one continues",
          "[sharing]") {
  const machine host;
  const std::string program = (host / "program").string();
  fs::copy_file(child, program);
  const launched first = host.initialized("a", {program, "manual"});
  fs::copy_file(child, host / "new");
  fs::rename(host / "new", program);
  const launched second = host.initialized("b", {program, "manual"});
  const launched third = host.initialized("c", {program, "manual"});
  CHECK(host.process_of("a") != host.process_of("b"));
  CHECK(host.process_of("c") == host.process_of("b"));
  must_be_served(*first);
  must_be_served(*second);
}

TEST_CASE("what does not fit costs one warning, and the program serves its shard alone",
          "[sharing]") {
  const machine host;
  SECTION("a folder that is open to others") {
    fs::create_directory(host.folder());
    fs::permissions(host.folder(), fs::perms(0750));
    must_be_served_alone(*host.start("a"), "is open to other users; chmod 700 ");
  }
  SECTION("a folder that cannot be made") {
    must_be_served_alone(*host.start("a", {child, "manual"}, {"TMPDIR=/nowhere"}),
                         "cannot be made: No such file or directory");
  }
  SECTION("a symbolic link in place of the folder") {
    fs::create_directory(host / "elsewhere");
    fs::permissions(host / "elsewhere", fs::perms(0700));
    fs::create_directory_symlink(host / "elsewhere", host.folder());
    must_be_served_alone(*host.start("a"), "cannot be opened: ");
  }
  SECTION("run_options::sharing is never") {
    for (const char* stream : {"a", "b"}) {
      must_be_served_alone(*host.start(stream, {child, "manual", "never_share"}),
                           "the program refused: run_options::sharing is never");
    }
    CHECK(host.sockets() == 0);
  }
  SECTION("a program that does not call kclxx::run") {
    const launched one = host.start("a", {"/bin/cat"});
    one->send("hello");
    one->expect("hello");
    one->close_input();
    CHECK(one->wait_exit() == 0);
    CHECK(contains(one->stderr_so_far(), "it has to call kclxx::run"));
    CHECK(host.sockets() == 0);
  }
  SECTION("more variables than a message holds") {
    must_be_served_alone(
        *host.start("a", {child, "manual"}, {"KCLXX_LONG=" + std::string(40000, 'x')}),
        "the shard cannot be handed over: Argument list too long");
  }
  CHECK(host.started().size() >= (host.started().empty() ? 0U : 1U));
}

TEST_CASE("a program that cannot be started is named", "[sharing]") {
  const machine host;
  const launched one = host.start("a", {"/nowhere/program"});
  CHECK(one->wait_exit() == 127);
  CHECK(one->stderr_so_far() == "kclxx-share: there is no program /nowhere/program\n");
}

TEST_CASE("a file on stdin is read by a process of its own", "[sharing][P58]") {
  const machine host;
  std::ofstream(host / "dialogue.jsonl") << R"({"action":"initialize","shardId":"s"})"
                                         << "\n";
  scripted_daemon one({KCLXX_SHARE, child},
                      {(host / "dialogue.jsonl").string(), host.environment_of("a")});
  one.expect_status("initialize");
  CHECK(one.wait_exit() == 0);
  CHECK(contains(one.stderr_so_far(), "stdin is neither a pipe nor a socket"));
}

TEST_CASE("without a daemon nothing is shared, so that no resident outlives it", "[sharing]") {
  const machine host;
  const launched one = host.start("a", {child, "manual"});
  // Its input has ended by the time it looks, or the resident ends the session at once.
  one->close_input();
  CHECK(one->wait_exit() == 0);
}

TEST_CASE("a socket that is another's is not used, and not removed by the resident", "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const fs::path path = host.socket();
  fs::remove(path);
  const descriptor thief = listen_at(path);
  const launched second = host.start("b");
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
  SECTION("by a process that ends each connection") {
    std::thread accepting([&] {
      for (int i = 0; i < 6; ++i) {
        descriptor(::accept4(thief.get(), nullptr, nullptr, SOCK_CLOEXEC)).close();
      }  // each attempt, and a look at who is there
    });
    must_be_served_alone(*second, "three residents ended before they took the shard over");
    accepting.join();
  }
  CHECK(fs::exists(path));
  must_be_served(*first);
}

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
      std::this_thread::sleep_for(50ms);  // whether or not the launcher has connected by now
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
    send_packet(launcher, bytes_of(message), fds);
    return reply_at(launcher).value();
  };
  SECTION("after it has connected") {}
  SECTION("after it has sent something else") { send_packet(launcher, "hello", {}); }
  SECTION("after it has sent half a message") {
    send_packet(launcher, bytes_of(own_message()).substr(0, 20), shard.to_pass());
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
    send_packet(launcher, bytes_of(own_message()), shard.to_pass());
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
  REQUIRE(comes_true([&] { return waiting_at_gate(host).size() == 1; }));
  const launched second = host.start("b", program);
  std::this_thread::sleep_for(50ms);  // whether or not it waits at the socket by now
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
  one.close_input();
  CHECK(one.wait_exit() == 0);
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

TEST_CASE("only the user's own processes meet", "[sharing]") {
  if (::geteuid() != 0) {
    WARN("needs root, to play another user");
    return;
  }
  constexpr uid_t other = 65534;
  const machine host;
  SECTION("the folder of another user is refused") {
    fs::create_directory(host.folder());
    REQUIRE(::chown(host.folder().c_str(), other, other) == 0);
    must_be_served_alone(*host.start("a"), "belongs to the user 65534");
  }
  SECTION("another user's resident is refused") {
    const fs::path path = socket_of_killed_resident(host);
    const descriptor listening = bind_at(path);
    REQUIRE(::seteuid(other) == 0);
    const int listens = ::listen(listening.get(), 16);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(listens == 0);
    must_be_served_alone(*host.start("b"), "belongs to the user 65534");
  }
  SECTION("another user's launcher is not served") {
    const launched first = host.initialized("a");
    fs::permissions(host / "", fs::perms(0711));
    fs::permissions(host.folder(), fs::perms(0711));
    fs::permissions(host.socket(), fs::perms(0666));
    const fs::path path = host.socket();
    REQUIRE(::seteuid(other) == 0);
    const descriptor launcher = connect_to(path);
    REQUIRE(::seteuid(0) == 0);
    const pipes shard;
    CHECK_FALSE(reply_at(launcher));
    must_be_served(*first);
  }
}

TEST_CASE("a resident without descriptors refuses, and serves again when it has some",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const pid_t resident = host.process_of("a");
  rlimit before{};
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, nullptr, &before) == 0);
  const auto now = static_cast<rlim_t>(descriptors_of(resident));
#ifdef KCLXX_IS_SANITIZED  // UndefinedBehaviorSanitizer opens a pipe to look at what was thrown
  const int room = GENERATE(0, 1, 3);
#else
  const int room = GENERATE(0, 1, 3, 5);
#endif
  rlimit few{now + static_cast<rlim_t>(room), before.rlim_max};
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, &few, nullptr) == 0);
  must_be_served_alone(*host.start("b"), "the program refused: ");
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, &before, nullptr) == 0);
  const launched third = host.initialized("c");
  CHECK(host.process_of("c") == resident);
  must_be_served(*third);
  must_be_served(*first);
}

TEST_CASE("a resident without its spare descriptor waits, and serves the launcher in the end",
          "[sharing]") {
  const machine host;
  const launched first = host.initialized("a");
  const pid_t resident = host.process_of("a");
  rlimit before{};
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{3, before.rlim_max};  // below the number of each that it could close
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, &none, nullptr) == 0);
  const auto ticks = [resident] {
    std::ifstream stat("/proc/" + std::to_string(resident) + "/stat");
    std::string text;
    std::getline(stat, text, ')');
    for (int field = 3; field < 14; ++field) stat >> text;
    long user = 0;
    long system = 0;
    stat >> user >> system;
    return user + system;
  };
  const launched second = host.start("b");
  const long began = ticks();
  std::this_thread::sleep_for(500ms);
  CHECK(ticks() - began < 10);  // of 50: it does not ask all the time
  REQUIRE(::prlimit(resident, RLIMIT_NOFILE, &before, nullptr) == 0);
  start(*second);
  CHECK(host.process_of("b") == resident);
  must_be_served(*second);
  must_be_served(*first);
}

TEST_CASE("a copy of the resident holds no shard's descriptors", "[sharing][P5]") {
  const machine host;
  const launched first = host.initialized("a");
  const launched second = host.initialized("b");
  second->records({"fork and stay"});
  second->expect_status("processRecords");
  first->close_input();
  CHECK(first->wait_exit() == 0);
  first->rest();
  second->close_input();
  CHECK(second->wait_exit() == 0);
  second->rest();
  second->await_end_of_stderr();
}

namespace {

/// What a shard of the test below goes through.
enum class life {
  idle,
  lease_lost,
  shard_ended,
  end_failed,
  threw,
  garbage,
  half_line,
  in_callback,
  stuck,
  killed,
  count
};

class random_life {
 public:
  random_life(scripted_daemon& shard, unsigned seed)
      : shard_(shard),
        random_(seed),
        kind_(static_cast<life>(seed % static_cast<unsigned>(life::count))) {}

  [[nodiscard]] life kind() const { return kind_; }

  /// Returns the exit status, or -1 for a launcher that was killed.
  int run() {
    for (auto left = random_() % 6; left > 0; --left) batch();
    switch (kind_) {
      case life::idle:
        break;
      case life::lease_lost:
        shard_.lease_lost();
        shard_.expect_status("leaseLost");
        break;
      case life::shard_ended:
        shard_.shard_ended();
        shard_.expect_null_checkpoint();
        shard_.answer("ThrottlingException");
        shard_.expect_null_checkpoint();
        shard_.answer();
        shard_.expect_status("shardEnded");
        break;
      case life::end_failed:
        shard_.shard_ended();
        shard_.expect_null_checkpoint();
        shard_.answer("InvalidStateException");
        return shard_.wait_exit(60s);
      case life::threw:
        shard_.records({"throw"}, position_);
        return shard_.wait_exit(60s);
      case life::garbage:
        shard_.send("noise");
        return shard_.wait_exit(60s);
      case life::half_line:
        shard_.send_raw(R"({"action":"processRec)");
        break;
      case life::in_callback:
        shard_.records({"wait for stop"}, position_);
        break;
      case life::stuck:
        shard_.records({"sleep"}, position_);
        break;
      default:
        shard_.records({random_() % 2 == 0 ? "wait for stop" : "a"}, position_);
        shard_.kill();
        return -1;
    }
    shard_.close_input();
    return shard_.wait_exit(60s);
  }

  [[nodiscard]] int expected() const {
    switch (kind_) {
      case life::end_failed:
        return 14;
      case life::threw:
        return 10;
      case life::garbage:
        return 11;
      case life::half_line:
      case life::in_callback:
        return 12;
      case life::stuck:
        return 13;
      case life::killed:
        return -1;
      default:
        return 0;
    }
  }

 private:
  // Until its status; some checkpoints fail first.
  void batch() {
    shard_.records({"a", random_() % 2 == 0 ? "async" : "async with a handler"}, position_);
    position_ += 2;
    while (!contains(shard_.next_line(), "status")) {
      shard_.answer(random_() % 3 == 0 ? "ThrottlingException" : "");
    }
  }

  scripted_daemon& shard_;
  std::mt19937 random_;
  life kind_;
  std::uint64_t position_ = 1;
};

}  // namespace

TEST_CASE("256 shards in one process live and end as they would alone", "[sharing][many]") {
  constexpr std::size_t shards = 256;
  constexpr std::size_t threads = 8;
  const machine host;
  const words command{child, "manual", "at_once", "fast_retry", "short_grace"};
  // The first report of ThreadSanitizer ends the resident, and so all statuses differ.
  const words environment{"TSAN_OPTIONS=halt_on_error=1"};
  const launched first = host.initialized("first", command, environment);
  const footprint before(host.process_of("first"));

  std::vector<launched> all;
  std::vector<int> statuses(shards);
  std::vector<std::string> failures(shards);
  std::vector<int> expected;
  std::size_t stuck = 0;
  for (unsigned i = 0; i < shards; ++i) {
    all.push_back(host.start("stream-" + std::to_string(i), command, environment));
    const random_life one(*all.back(), i);
    expected.push_back(one.expected());
    if (one.kind() == life::stuck) ++stuck;
  }
  for (const launched& one : all) start(*one);
  std::vector<std::thread> daemons;
  std::atomic<std::size_t> at_work = threads;
  for (std::size_t t = 0; t < threads; ++t) {
    daemons.emplace_back([&, t] {
      for (std::size_t i = t; i < shards; i += threads) {
        try {
          statuses[i] = random_life(*all[i], static_cast<unsigned>(i)).run();
        } catch (const std::exception& error) {
          failures[i] = error.what();
        }
      }
      --at_work;
    });
  }
  // A daemon reads stderr all the time, and here all shards print to this one.
  while (at_work > 0) {
    static_cast<void>(first->stderr_so_far());
    std::this_thread::sleep_for(1ms);
  }
  for (std::thread& one : daemons) one.join();
  INFO(first->stderr_so_far());
  CHECK(failures == std::vector<std::string>(shards));
  CHECK(statuses == expected);
  CHECK(host.started().size() == 1);
  before.must_come_back(stuck);
  must_be_served(*first);
}
