// SPDX-License-Identifier: Apache-2.0
// The parking lot of JSON Lines files.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/shard_context.hpp>

#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/recording_processor.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"
#include "unit/processing/processing_support.hpp"
#include "unit/runtime/served_shard.hpp"

namespace kclxx::test {

namespace {

/// The context of a shard that is served, and gets no records.
class lone_shard {
 public:
  explicit lone_shard(const std::string& id)
      : served_([this](const shard_context& shard) {
          context_ = &shard;
          return std::make_unique<recording_processor>(shard);
        }) {
    served_.initialize(id);
  }
  operator const shard_context&() const { return *context_; }  // NOLINT(google-explicit-*)

 private:
  const shard_context* context_ = nullptr;
  served_shard served_;
};

struct fault {
  int error;
  std::function<void()> before;
};

std::map<std::string, fault>& faults() {
  static std::map<std::string, fault> by_function;
  return by_function;
}

/// Whether the call fails; errno is set then.
bool fails(const char* function) {
  const auto found = faults().find(function);
  if (found == faults().end()) return false;
  const fault due = found->second;
  faults().erase(found);
  if (due.before) due.before();
  errno = due.error;
  return due.error != 0;
}

template <class... Arguments>
long call(const char* function, long number, Arguments... arguments) {
  return fails(function) ? -1 : ::syscall(number, arguments...);
}

/// While it lives, the next call of a system function (flock, fdatasync, fsync) fails, or comes
/// after something else.
/// Thread safety: none.
class failing_disk {
 public:
  failing_disk(const char* function, int error) { faults()[function] = {error, {}}; }
  failing_disk(const char* function, std::function<void()> before) {
    faults()[function] = {0, std::move(before)};
  }
  failing_disk(const failing_disk&) = delete;
  failing_disk& operator=(const failing_disk&) = delete;
  ~failing_disk() { faults().clear(); }

  /// Whether the call has come.
  [[nodiscard]] static bool has_failed() { return faults().empty(); }
};

}  // namespace

}  // namespace kclxx::test

using kclxx::test::call;
using kclxx::test::fails;

/// The C library's functions, in front of the real ones, in this program alone.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {
int flock(int fd, int operation) { return int(call("flock", SYS_flock, fd, operation)); }
int fdatasync(int fd) { return int(call("fdatasync", SYS_fdatasync, fd)); }
uid_t geteuid() { return uid_t(::syscall(SYS_geteuid)) + (fails("geteuid") ? 1 : 0); }
int fsync(int fd) { return int(call("fsync", SYS_fsync, fd)); }
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::istringstream text(read_file(file));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

const record one_record(record::fields{.data = "payload", .sequence_number = "7"});

void park(parking_lot& lot, const shard_context& shard, const std::string& error = "no") {
  const failed_record failed{one_record, 1, error, error};
  lot.park(shard, {&failed, 1});
}

/// A lot in a folder of its own, and one shard.
struct lot_of_one_shard {
  void park() { test::park(lot, shard); }
  void prepare() { lot.prepare(shard); }
  [[nodiscard]] std::filesystem::path file() const { return lot.file_of(shard); }
  [[nodiscard]] std::string text() const { return read_file(file()); }
  [[nodiscard]] std::size_t line_count() const { return lines_of(file()).size(); }

  const temporary_folder directory;
  parking_file lot{directory.path()};
  const lone_shard shard{"s"};
};

/// No file can be larger, as on a full disk.
struct file_size_limit {
  explicit file_size_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old);
    handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit smaller{bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &smaller);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
  }
  rlimit old{};
  void (*handler)(int) = SIG_DFL;
};

void fail(const record& event) {
  if (event.data().starts_with("bad")) throw std::runtime_error("no");
}

}  // namespace

TEST_CASE("a parked line has the record and why it failed", "[processing][parking]") {
  const temporary_folder directory;
  int calls = 0;
  testing::worker with(each(
                           [&](const record&) {
                             throw std::runtime_error("error \"" + std::to_string(++calls) + "\"");
                           },
                           {.max_attempts = 2,
                            .bad_record = bad_record::park,
                            .lot = std::make_shared<parking_file>(directory.path()),
                            .breaker = {}}),
                       {}, {.stream_name = "orders", .application_name = "billing"});
  with.initialize("shardId-000000000003");
  with.deliver_records({{.data = std::string_view("\0\xff\n", 3),
                         .partition_key = "k\"\xc3\xa9",
                         .sequence_number = "4961",
                         .sub_sequence_number = 2,
                         .approximate_arrival_timestamp = 1'600'000'000'123ms},
                        {.sequence_number = "4962"}});
  const auto file = directory.path() / "billing.orders.shardId-000000000003.parked.jsonl";
  const auto lines = lines_of(file);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("parkedAt").get<std::int64_t>() >= 1'600'000'000'000);
  CHECK(lines[0].at("parkedAt").get<std::int64_t>() < 1'600'000'001'000);
  auto first = lines[0];
  first.erase("parkedAt");
  CHECK(first == json{{"application", "billing"},
                      {"stream", "orders"},
                      {"shard", "shardId-000000000003"},
                      {"sequenceNumber", "4961"},
                      {"subSequenceNumber", 2},
                      {"partitionKey", "k\"\xc3\xa9"},
                      {"approximateArrivalTimestamp", 1'600'000'000'123},
                      {"attempts", 2},
                      {"firstError", "error \"1\""},
                      {"lastError", "error \"2\""},
                      {"data", "AP8K"}});
  CHECK(lines[1].at("data").is_null());
  CHECK(lines[1].at("partitionKey").is_null());
  CHECK_FALSE(lines[1].contains("approximateArrivalTimestamp"));
}

TEST_CASE("a parked file is readable by its owner only", "[processing][parking]") {
  lot_of_one_shard lot;
  lot.park();
  struct stat about {};
  REQUIRE(::stat(lot.file().c_str(), &about) == 0);
  CHECK((about.st_mode & 0777U) == 0600U);
}

TEST_CASE("each shard has a file, whose name has nothing but letters, digits and -_.",
          "[processing][parking]") {
  const parking_file lot("/lot");
  CHECK(lot.file_of(lone_shard("shardId-1")) == "/lot/shardId-1.parked.jsonl");
  CHECK(lot.file_of(lone_shard("../../etc/x y")) == "/lot/.._.._etc_x_y.parked.jsonl");
}

TEST_CASE("a line that a crash cut off is ended before the next one", "[processing][parking]") {
  lot_of_one_shard lot;
  const std::string cut_off = GENERATE(R"({"shard":"s","seque)", "{");
  std::ofstream(lot.file()) << cut_off;
  lot.park();
  lot.park();
  std::istringstream text(lot.text());
  std::string line;
  std::getline(text, line);
  CHECK(line == cut_off);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(std::getline(text, line));
    CHECK(json::parse(line).at("sequenceNumber") == "7");
  }
  CHECK_FALSE(std::getline(text, line));
}

TEST_CASE("threads and lots that park into one file write whole lines", "[processing][parking]") {
  const temporary_folder directory;
  const lone_shard shard{"s"};
  parking_file first(directory.path());
  parking_file second(directory.path());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 25; ++n) {
          park(i % 2 == 0 ? first : second, shard, std::string(10'000, 'x'));
        }
      });
    }
  }
  CHECK(lines_of(first.file_of(shard)).size() == 100);
}

TEST_CASE("without a lot, records are parked in KCLXX_PARKING_DIR", "[processing][parking]") {
  const temporary_folder directory;
  ::setenv("KCLXX_PARKING_DIR", directory.path().c_str(), 1);
  testing::worker with(each(fail, {.max_attempts = 1, .bad_record = bad_record::park}));
  with.initialize("s").deliver({"a", "bad"});
  ::unsetenv("KCLXX_PARKING_DIR");
  CHECK(lines_of(directory.path() / "s.parked.jsonl").size() == 1);
}

TEST_CASE("a policy that parks is refused when no place is named", "[processing][parking]") {
  for (const char* const value : {"", static_cast<const char*>(nullptr)}) {
    value == nullptr ? ::unsetenv("KCLXX_PARKING_DIR") : ::setenv("KCLXX_PARKING_DIR", value, 1);
    CHECK_THROWS_WITH(each(fail, {.bad_record = bad_record::park}).require_valid(),
                      "failure_policy: bad_record::park needs a place: set KCLXX_PARKING_DIR to a "
                      "directory, or failure_policy::lot");
  }
}

TEST_CASE("a relative parking directory stays where it was when the lot was made",
          "[processing][parking]") {
  const temporary_folder directory;
  const temporary_folder elsewhere;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  parking_file lot(".");
  std::filesystem::current_path(elsewhere.path());
  park(lot, lone_shard("s"));
  std::filesystem::current_path(before);
  CHECK(lines_of(directory.path() / "s.parked.jsonl").size() == 1);
}

TEST_CASE("a parking directory that is not there when a shard starts is waited for",
          "[processing][parking]") {
  const temporary_folder directory;
  const auto folder = directory.path() / "lot";
  const auto lot = std::make_shared<parking_file>(folder);
  int attempts = 0;
  testing::worker with(each(
                           [&](const record& event) {
                             if (event.data() == "bad" && ++attempts == 5)
                               std::filesystem::create_directory(folder);
                             fail(event);
                           },
                           parking(lot, 1)),
                       prompt());
  with.initialize("s");
  CHECK(logged(with, "records cannot be parked: cannot open " + folder.string()));
  with.deliver({"a", "bad", "c"});
  CHECK(attempts == 5);
  CHECK(lines_of(folder / "s.parked.jsonl").size() == 1);
  CHECK(with.persisted() == sequence_position("3"));
}

TEST_CASE("a line that did not fit on the disk is taken back", "[processing][parking]") {
  lot_of_one_shard lot;
  lot.park();
  const std::string before = lot.text();

  std::string error;
  {
    const file_size_limit full(before.size() + 20);  // 20 bytes of the line fit
    try {
      lot.park();
    } catch (const std::system_error& thrown) {
      error = thrown.what();
    }
  }
  CHECK(error == "cannot write to " + lot.file().string() + ": File too large");
  CHECK(lot.text() == before);
  lot.park();
  CHECK(lot.line_count() == 2);
}

TEST_CASE("a record that the disk may have lost is not parked", "[processing][parking]") {
  lot_of_one_shard lot;
  lot.park();
  const std::string before = lot.text();
  for (const char* const function : {"flock", "fdatasync", "fsync"}) {
    INFO(function);
    const failing_disk disk(function, EIO);
    CHECK_THROWS_AS(lot.park(), std::system_error);
    CHECK(failing_disk::has_failed());
    CHECK(lot.text() == before);
  }
  lot.park();
  CHECK(lot.line_count() == 2);
}

TEST_CASE("a signal while the file is locked by another process is no failure",
          "[processing][parking]") {
  lot_of_one_shard lot;
  const failing_disk disk("flock", EINTR);
  lot.park();
  CHECK(failing_disk::has_failed());
  CHECK(lot.line_count() == 1);
}

TEST_CASE("the records of one call are one write, and synchronized once", "[processing][parking]") {
  lot_of_one_shard lot;
  int synchronized = 0;
  const failed_record failed{one_record, 1, "no", "no"};
  const std::vector<failed_record> all(1000, failed);
  {
    const failing_disk disk("fdatasync", [&] { synchronized = int(lot.line_count()); });
    lot.lot.park(lot.shard, all);
  }
  CHECK(synchronized == 1000);
  CHECK(lot.line_count() == 1000);
}

TEST_CASE("a record that waited for the lock of a file that was moved away is in the new file",
          "[processing][parking]") {
  lot_of_one_shard lot;
  lot.park();
  const auto moved = lot.directory.path() / "again.jsonl";
  bool makes = false;
  SECTION("which it makes") {}
  SECTION("which another process has made") { makes = true; }
  const failing_disk disk("flock", [&] {
    std::filesystem::rename(lot.file(), moved);
    if (makes) std::ofstream made(lot.file());
  });
  lot.park();
  CHECK(lines_of(moved).size() == 1);
  CHECK(lot.line_count() == 1);
}

TEST_CASE("a file that another process keeps locked is a failure with a line in the log",
          "[processing][parking]") {
  const auto which =
      GENERATE(form::each, form::batches_with_names, form::parallel, form::completions);
  const temporary_folder directory;
  const auto lot = std::make_shared<parking_file>(directory.path());
  const auto file = lot->file_of(lone_shard("s"));
  { std::ofstream made(file); }
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(descriptor, LOCK_EX) == 0);
  testing::worker with(make(
                           which,
                           [&, calls = 0](const record& event, const shard_context&) mutable {
                             if (event.data() == "bad" && ++calls == 3)
                               ::flock(descriptor, LOCK_UN);
                             fail(event);
                           },
                           parking(lot, 1)),
                       prompt());
  with.initialize("s").deliver({"a", "bad", "c"}).end_shard();
  ::close(descriptor);
  INFO(with);
  CHECK(logged(with, "another process keeps " + file.string() + " locked"));
  CHECK(count_logged(with, "parked after") == 1);
  CHECK(lines_of(file).size() == 1);
  CHECK(with.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("what a file system cannot do for a lot is logged, and records are parked without it",
          "[processing][parking]") {
  const auto [function, error, text] = GENERATE(table<const char*, int, std::string>({
      {"flock", ENOLCK, " cannot be locked: No locks available; let no other process park"},
      {"flock", ENOSYS, " cannot be locked: Function not implemented; let no other process park"},
      {"fsync", EINVAL, " cannot be synchronized: Invalid argument; a crash of the machine may"},
  }));
  CAPTURE(function, error);
  const temporary_folder directory;
  const auto lot = std::make_shared<parking_file>(directory.path());
  testing::worker with(each(fail, parking(lot, 1)), prompt());
  {
    const failing_disk disk(function, error);
    with.initialize("s");
    CHECK(failing_disk::has_failed());
  }
  CHECK(count_logged(with, text) == 1);
  {
    const failing_disk disk(function, error);
    with.deliver({"bad"});
    CHECK(failing_disk::has_failed());
  }
  CHECK(lines_of(directory.path() / "s.parked.jsonl").size() == 1);
  CHECK(count_logged(with, "parked after") == 1);
}

TEST_CASE("records can be parked whatever the length of names is, each shard's in its own file",
          "[processing][parking]") {
  lot_of_one_shard lot;
  const std::string long_name(300, 's');
  const auto name_of = [&](const std::string& shard) {
    return lot.lot.file_of(lone_shard(shard)).filename().string();
  };
  CHECK_NOTHROW(lot.lot.prepare(lone_shard(long_name)));
  CHECK(name_of("a" + long_name) != name_of("b" + long_name));
  CHECK(name_of(long_name + "a" + long_name) != name_of(long_name + "b" + long_name));
  CHECK(name_of(long_name).ends_with(".parked.jsonl"));
}

TEST_CASE("a place that cannot be parked in is refused before the first record",
          "[processing][parking]") {
  lot_of_one_shard lot;
  const auto refusal = [&](const shard_context& shard) {
    return "records cannot be parked: " + lot.lot.file_of(shard).string();
  };
  SECTION("a symbolic link, which may lead to a file of somebody else's") {
    std::filesystem::create_symlink(lot.directory.path() / "other", lot.file());
    CHECK_THROWS_WITH(lot.prepare(), Contains("Too many levels of symbolic links"));
    CHECK_THROWS_AS(lot.park(), std::system_error);
  }
  SECTION("a directory in the file's place") {
    std::filesystem::create_directory(lot.file());
    CHECK_THROWS_WITH(lot.prepare(), Contains("Is a directory"));
  }
  SECTION("a file that others can write") {
    const auto bits = GENERATE(0620U, 0602U, 0666U);
    lot.park();
    std::filesystem::permissions(lot.file(), std::filesystem::perms(bits));
    CHECK_THROWS_WITH(lot.prepare(),
                      Contains(refusal(lot.shard) + " can be written by other users"));
    CHECK_THROWS_AS(lot.park(), std::system_error);
    CHECK(lot.line_count() == 1);
  }
  SECTION("a file of another user's") {
    lot.park();
    {
      const failing_disk other("geteuid", EPERM);
      CHECK_THROWS_WITH(lot.prepare(), Contains(refusal(lot.shard) + " belongs to another user"));
    }
    const failing_disk other("geteuid", EPERM);
    CHECK_THROWS_AS(lot.park(), std::system_error);
    CHECK(lot.line_count() == 1);
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(lot.file().c_str(), 0600) == 0);
    CHECK_THROWS_WITH(lot.prepare(), Contains(refusal(lot.shard) + " is no regular file"));
    CHECK_THROWS_AS(lot.park(), std::system_error);
  }
}

TEST_CASE("to prepare a lot leaves no empty file, and does not wait for who parks",
          "[processing][parking]") {
  lot_of_one_shard lot;
  lot.prepare();
  CHECK_FALSE(std::filesystem::exists(lot.file()));
  lot.park();
  const int descriptor = ::open(lot.file().c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(descriptor, LOCK_EX) == 0);
  lot.prepare();
  ::close(descriptor);
  CHECK(lot.line_count() == 1);
}

TEST_CASE("a program that is started while a record is parked does not inherit the file",
          "[processing][parking]") {
  lot_of_one_shard lot;
  int open = 0;
  int inherited = 0;
  const failing_disk disk("fdatasync", [&] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the iterator's own
      if (std::filesystem::read_symlink(entry, gone) != lot.file()) continue;
      ++open;
      const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFD);
      if ((flags & FD_CLOEXEC) == 0) ++inherited;
    }
  });
  lot.park();
  CHECK(open == 1);
  CHECK(inherited == 0);
}

TEST_CASE("a process that was forked while a record was parked does not keep the file locked",
          "[processing][parking]") {
  lot_of_one_shard lot;
  // The descriptor of this process is closed after the fork, and the lock is gone all the same.
  open_pipe blocks;
  pid_t child = -1;
  {
    const failing_disk disk("fdatasync", [&] {
      child = ::fork();
      if (child == 0) {
        char byte = 0;
        blocks.close_write_end();
        [[maybe_unused]] const auto end = ::read(blocks.read_end(), &byte, 1);
        ::_exit(0);
      }
    });
    lot.park();
  }
  const int descriptor = ::open(lot.file().c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(::flock(descriptor, LOCK_EX | LOCK_NB) == 0);
  ::close(descriptor);
  blocks.close_write_end();
  ::waitpid(child, nullptr, 0);
}

}  // namespace kclxx::test
