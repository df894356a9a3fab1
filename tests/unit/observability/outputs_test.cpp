// SPDX-License-Identifier: Apache-2.0
// What watches a session on a thread of its own: observers and the built-in outputs.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/descriptor.hpp"
#include "observability/metrics_outputs.hpp"
#include "observability/observation.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/kept_log.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"

namespace {

/// The error of the next calls that lock a file; 0: none.
std::atomic<int> lock_error;

}  // namespace

// Replaces the function of the C library.
extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (const int error = lock_error; error != 0 && command == F_OFD_SETLK) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

namespace kclxx::observability {

namespace {

namespace fs = std::filesystem;
using test::kept_log;
using test::temporary_folder;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// In each of CloudWatch's lines.
constexpr const char* cloudwatch_mark = "\"CloudWatchMetrics\"";

const auto in_time = [] { return clock::now() + 30s; };

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

class counting final : public observer {
 public:
  void on_event(const event_source&, const shard_event& event) override {
    if (const auto* gap = std::get_if<events_dropped>(&event)) {
      dropped += gap->count;
    } else {
      ++events;
    }
  }
  test::awaited_count events;
  std::atomic<std::uint64_t> dropped = 0;
};

/// Does not return from its first event until it is released.
class blocking final : public observer {
 public:
  void on_event(const event_source&, const shard_event&) override {
    entered.come();
    released.wait();
  }
  test::moment entered;
  test::moment released;
};

const auto no_throw = [](const std::exception_ptr&) { FAIL("no observer throws here"); };

using watching = std::unique_ptr<observation>;

watching watch(const run_options& options, kept_log* log = nullptr,
               const std::function<void(const std::exception_ptr&)>& threw = no_throw) {
  const auto write = [log](log_level level, const std::string& text) {
    if (log != nullptr) log->add({level, "", text});
  };
  const auto write_text = [write](const std::string& text) { write(log_level::info, text); };
  return observation::make(options, {"shardId-3", "orders", "billing", {}},
                           {write, write_text, threw});
}
watching watch(std::vector<std::shared_ptr<observer>> observers) {
  run_options options;
  options.observers = std::move(observers);
  return watch(options);
}
watching watch(const metrics_options& outputs, kept_log& log) {
  run_options options;
  options.metrics = outputs;
  return watch(options, &log);
}

/// The text file of the shard, and what is logged.
struct watched_folder {
  [[nodiscard]] fs::path file() const {
    return folder.path() / "kclxx.billing.orders.shardId-3.prom";
  }
  [[nodiscard]] std::string lease_text() const {
    return test::read_file(folder.path() / lease_file);
  }
  [[nodiscard]] bool exists() const { return fs::exists(file()); }
  [[nodiscard]] std::string text() const { return test::read_file(file()); }
  [[nodiscard]] bool has(const std::string& part) const { return test::contains(text(), part); }

  const std::string lease_file = "kclxx-leases.billing.orders.prom";
  const temporary_folder folder;
  const std::string directory = folder.path().string();
  kept_log log;
};

}  // namespace

TEST_CASE("all events reach an observer that keeps up, in their order", "[observability][queue]") {
  class ordered final : public observer {
   public:
    void on_event(const event_source&, const shard_event& event) override {
      is_ordered = is_ordered && std::get<batch_delivered>(event).records == next;
      ++next;
    }
    std::size_t next = 0;
    bool is_ordered = true;
  };
  const auto seen = std::make_shared<ordered>();
  const auto queue = watch({seen});
  for (std::size_t i = 0; i < 10'000; ++i) queue->observe(observer::batch_delivered{.records = i});
  CHECK(queue->finish(in_time()));
  CHECK(seen->next == 10'000);
  CHECK(seen->is_ordered);
}

TEST_CASE("events beyond the capacity are dropped and counted, and nobody waits",
          "[observability][queue]") {
  const auto slow = std::make_shared<blocking>();
  const auto seen = std::make_shared<counting>();
  const auto queue = watch({slow, seen});
  queue->observe(observer::lease_gained{});
  slow->entered.wait();
  for (std::size_t i = 0; i < observation::capacity + 17; ++i) {
    queue->observe(observer::batch_delivered{});
  }
  slow->released.come();
  CHECK(queue->finish(in_time()));
  CHECK(seen->events == observation::capacity + 1);
  CHECK(seen->dropped == 17);
}

TEST_CASE("what an observer throws first is reported, and the others continue",
          "[observability][queue]") {
  class throwing final : public observer {
   public:
    void on_event(const observer::event_source&, const observer::shard_event&) override {
      throw std::runtime_error("no disk");
    }
  };
  std::atomic<int> reported = 0;
  const auto seen = std::make_shared<counting>();
  const auto queue = watch(run_options{.observers = {std::make_shared<throwing>(), seen}}, nullptr,
                           [&](const std::exception_ptr&) { ++reported; });
  queue->observe(observer::lease_gained{});
  queue->observe(observer::batch_delivered{});
  CHECK(queue->finish(in_time()));
  CHECK(reported == 1);
  CHECK(seen->events == 2);
}

TEST_CASE("a file is replaced as a whole, and readable for all", "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.prom";
  const mode_t before = ::umask(077);
  metrics_file file(path.string());
  CHECK_FALSE(file.write("one\n"));
  CHECK_FALSE(file.write("two\n"));
  ::umask(before);
  CHECK(test::read_file(path) == "two\n");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"kclxx.a.b.prom"});
  CHECK((fs::status(path).permissions() & fs::perms::others_read) != fs::perms::none);
  file.remove();
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a file is locked while its writer lives, and not by those who only read it",
          "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.prom";
  const auto is_locked = [&] {
    const io::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct flock other {};
    other.l_type = F_RDLCK;
    REQUIRE(::fcntl(file.get(), F_OFD_GETLK, &other) == 0);
    return other.l_type == F_WRLCK;
  };
  io::descriptor stranger;
  const auto lock_as_reader = [&] {
    stranger = io::descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct flock shared {};
    shared.l_type = F_RDLCK;
    static_cast<void>(::fcntl(stranger.get(), F_OFD_SETLK, &shared));
    static_cast<void>(::flock(stranger.get(), LOCK_EX | LOCK_NB));
  };
  {
    metrics_file file(path.string());
    for (int writes = 0; writes < 2; ++writes) {
      REQUIRE_FALSE(file.write("x\n"));
      CHECK(is_locked());
      lock_as_reader();
      CHECK(is_locked());
    }
  }
  CHECK_FALSE(is_locked());
  lock_as_reader();
  CHECK_FALSE(is_locked());
}

TEST_CASE("a machine that refuses each lock has the metrics, without a lock",
          "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.prom";
  metrics_file file(path.string());
  lock_error = GENERATE(EACCES, EAGAIN, EPERM);
  CHECK_FALSE(file.write("x\n"));
  CHECK(file.lock_error().value() == lock_error);
  lock_error = 0;
  CHECK(names_in(folder.path()) == std::vector<std::string>{"kclxx.a.b.prom"});
}

TEST_CASE("the file of the process that has the shard now is not removed",
          "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.prom";
  metrics_file former(path.string());
  metrics_file present(path.string());
  CHECK_FALSE(former.write("former\n"));
  CHECK_FALSE(present.write("present\n"));
  former.remove();
  CHECK(test::read_file(path) == "present\n");
}

TEST_CASE("what killed writers on this machine have left is removed, and nothing of another writer",
          "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.c.prom";
  const auto leave = [&](const std::string& name) {
    const fs::path left = folder.path() / name;
    std::ofstream(left) << "half";
    return left;
  };
  const fs::path killed = leave("kclxx.a.b.c.prom" + temporary_suffix());
  const fs::path killed_elsewhere = leave("kclxx.x.y.z.prom" + temporary_suffix());
  const fs::path other_machine = leave("kclxx.a.b.c.prom.12345-1-0");
  const fs::path other_program = leave("other.prom" + temporary_suffix());
  const fs::path living = leave("kclxx.a.b.c.prom" + temporary_suffix());
  const io::descriptor writer(::open(living.c_str(), O_WRONLY | O_CLOEXEC));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  REQUIRE(::fcntl(writer.get(), F_OFD_SETLK, &whole) == 0);
  metrics_file file(path.string());
  CHECK_FALSE(file.write("x\n"));
  CHECK_FALSE(fs::exists(killed));
  CHECK_FALSE(fs::exists(killed_elsewhere));
  CHECK(fs::exists(other_machine));
  CHECK(fs::exists(other_program));
  CHECK(fs::exists(living));
  CHECK(test::read_file(path) == "x\n");
}

TEST_CASE("a file that another user has put there is neither written to nor followed",
          "[observability][file]") {
  const temporary_folder folder;
  const fs::path path = folder.path() / "kclxx.a.b.prom";
  const fs::path theirs = folder.path() / "theirs";
  std::ofstream(theirs) << "theirs";
  fs::permissions(theirs, fs::perms::owner_read);
  fs::create_symlink(theirs, path);
  metrics_file file(path.string());
  CHECK_FALSE(file.write("one\n"));
  std::string suffix = temporary_suffix();
  suffix.erase(suffix.rfind('-') + 1);
  for (int i = 0; i < 1000; ++i) {  // one of them has the next name
    fs::create_symlink(theirs, path.string() + suffix + std::to_string(i));
  }
  CHECK_FALSE(file.write("two\n"));
  CHECK(test::read_file(theirs) == "theirs");
  CHECK(fs::status(theirs).permissions() == fs::perms::owner_read);
  CHECK(test::read_file(path) == "two\n");
}

TEST_CASE("the text file is there with the lease, and gone when it ends",
          "[observability][outputs]") {
  watched_folder watched;
  const auto outputs = watch(metrics_options{.directory = watched.directory}, watched.log);
  outputs->observe(observer::lease_gained{});
  CHECK(test::eventually([&] { return watched.exists(); }));
  CHECK(watched.has("kclxx_records_total{"));
  outputs->observe(observer::lease_ended{observer::lease_ended::reason::lost});
  CHECK(test::eventually([&] { return !watched.exists(); }));
  outputs->observe(observer::session_ended{exit_status::ok});
  CHECK(outputs->finish(in_time()));
  CHECK(names_in(watched.directory) == std::vector{watched.lease_file});
  CHECK(watched.log.entries().empty());
}

TEST_CASE("leases are counted by stream, in a file that outlives them",
          "[observability][outputs]") {
  watched_folder watched;
  const metrics_options options{.directory = watched.directory};
  using reason = observer::lease_ended::reason;
  const auto play = [&](const std::vector<observer::shard_event>& events) {
    const auto outputs = watch(options, watched.log);
    outputs->observe(observer::lease_gained{});
    for (observer::shard_event event : events) outputs->observe(std::move(event));
    CHECK(outputs->finish(in_time()));
  };
  const observer::session_ended ok{exit_status::ok};
  play({observer::lease_ended{reason::lost}, ok});
  play({observer::lease_ended{reason::lost}, ok});
  play({observer::lease_ended{reason::shard_finished}, ok});
  play({ok});
  play({observer::session_ended{exit_status::daemon_gone}});
  const std::string text = watched.lease_text();
  const std::string labels = R"({application="billing",stream="orders")";
  CHECK(test::contains(text, "\nkclxx_leases_gained_total" + labels + "} 5\n"));
  const auto ended = [&](const std::string& why, const std::string& count) {
    return test::contains(
        text, "\nkclxx_leases_ended_total" + labels + ",reason=\"" + why + "\"} " + count + "\n");
  };
  CHECK(ended("lost", "2"));
  CHECK(ended("finished", "1"));
  CHECK(ended("closed", "1"));
  CHECK(ended("failed", "1"));
  CHECK_FALSE(test::contains(watched.text(), "kclxx_leases"));  // it stays after a failure
}

TEST_CASE("children that count leases at the same moment lose no count",
          "[observability][outputs]") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "kclxx-leases.a.b.prom").string();
  constexpr int children = 4;
  constexpr int leases = 25;
  std::vector<std::thread> threads;
  for (int i = 0; i < children; ++i) {
    threads.emplace_back([&] {
      for (int lease = 0; lease < leases; ++lease) {
        figures_recorder recorder;
        recorder.record({}, observer::lease_gained{});
        lease_counters counters(path);
        while (counters.add(recorder.now(), {"s", "b", "a", {}})) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(test::contains(test::read_file(path), "stream=\"b\"} 100\n"));
}

TEST_CASE("a child that other children keep from counting leases counts them later, without a line",
          "[observability][outputs]") {
  watched_folder watched;
  const metrics_options options{.directory = watched.directory};
  metrics_outputs outputs(
      options,
      [&](log_level level, const std::string& text) {
        watched.log.add({level, "", text});
      },
      [](const std::string&) {});
  figures_recorder recorder;
  recorder.record({}, observer::lease_gained{});
  const auto write = [&](bool is_last) {
    outputs.write(recorder.now(), {"s", "orders", "billing", {}}, {}, is_last, false);
  };
  io::descriptor counting(::open((watched.folder.path() / watched.lease_file).c_str(),
                                 O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  REQUIRE(::fcntl(counting.get(), F_OFD_SETLK, &whole) == 0);
  write(false);
  CHECK(watched.log.entries().empty());
  const bool is_last = GENERATE(false, true);
  if (!is_last) counting = {};
  write(is_last);
  CHECK(test::contains(watched.lease_text(), "} 1\n") == !is_last);
  CHECK(watched.log.entries().size() == (is_last ? 1U : 0U));
}

TEST_CASE("a file of leases that is damaged counts from zero on", "[observability][outputs]") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "kclxx-leases.a.b.prom").string();
  const std::string series = R"(kclxx_leases_gained_total{application="a",stream="b"})";
  std::ofstream(path) << GENERATE(as<std::string>(), "", "\n", "garbage") << series
                      << GENERATE(as<std::string>(), "", " ", " x\n", "17",
                                  " 99999999999999999999\n");
  figures_recorder recorder;
  recorder.record({}, observer::lease_gained{});
  CHECK_FALSE(lease_counters(path).add(recorder.now(), {"s", "b", "a", {}}));
  CHECK(test::contains(test::read_file(path), "\n" + series + " 1\n"));
}

TEST_CASE("exit status 0 removes the file; any other leaves the last figures in it",
          "[observability][outputs]") {
  const exit_status status = GENERATE(exit_status::ok, exit_status::callback_failed);
  watched_folder watched;
  const auto outputs = watch(metrics_options{.directory = watched.directory}, watched.log);
  outputs->observe(observer::lease_gained{});
  outputs->observe(observer::batch_delivered{.records = 4711});
  outputs->observe(observer::session_ended{status});
  CHECK(outputs->finish(in_time()));
  CHECK(watched.has("} 4711\n") == (status != exit_status::ok));
}

TEST_CASE("the program's own figures are in the file; what is bad is left out, and logged once",
          "[observability][outputs]") {
  watched_folder watched;
  std::atomic<bool> throws = false;
  const auto outputs =
      watch(metrics_options{.directory = watched.directory,
                            .write_interval = 1ms,
                            .own_metrics =
                                [&](const observer::shard_names&) {
                                  if (throws) throw std::runtime_error("no figures");
                                  return std::vector<own_metric>{{.name = "not a name", .value = 8},
                                                                 {.name = "clicks", .value = 7}};
                                },
                            .remove_at_end = false},
            watched.log);
  outputs->observe(observer::lease_gained{});
  REQUIRE(test::eventually([&] { return watched.has("} 7\n"); }));
  CHECK(watched.has("\nclicks{application=\""));
  CHECK_FALSE(watched.has("not a name"));
  CHECK(watched.has("\nkclxx_process_id{"));
  throws = true;
  CHECK(outputs->finish(in_time()));
  CHECK_FALSE(watched.has("clicks"));
  CHECK(watched.has("\nkclxx_process_id{"));
  CHECK(watched.log.await("metrics_options::own_metrics: it failed: no figures (logged once)"));
  int left_out = 0;
  for (const auto& entry : watched.log.entries())
    left_out += test::contains(entry.text, "left out");
  CHECK(left_out == 1);
}

TEST_CASE("a directory that is missing is reported once", "[observability][outputs]") {
  watched_folder watched;
  {
    const auto outputs = watch(metrics_options{.directory = watched.directory + "/missing",
                                               .write_interval = 1ms,
                                               .cloudwatch_interval = 1ms},
                               watched.log);
    outputs->observe(observer::lease_gained{});
    CHECK(watched.log.await(cloudwatch_mark, 5));  // before each of them the file was tried
    CHECK(outputs->finish(in_time()));
  }
  auto entries = watched.log.entries();
  std::erase_if(entries, [](const auto& one) { return test::contains(one.text, cloudwatch_mark); });
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].text ==
        "cannot write the metrics to " + watched.directory +
            "/missing/kclxx.billing.orders.shardId-3.prom: No such file or directory");
}

TEST_CASE("CloudWatch's line comes at its interval and at the end, each with what is new",
          "[observability][outputs]") {
  kept_log log;
  const auto outputs = watch(metrics_options{.cloudwatch_interval = 20ms}, log);
  outputs->observe(observer::lease_gained{});
  outputs->observe(observer::batch_delivered{.records = 3});
  CHECK(log.await(cloudwatch_mark));
  outputs->observe(observer::batch_delivered{.records = 4});
  CHECK(outputs->finish(in_time()));
  std::size_t records = 0;
  for (const log_entry& entry : log.entries()) {
    records += nlohmann::json::parse(entry.text).at("Records").get<std::size_t>();
  }
  CHECK(records == 7);
}

TEST_CASE("the environment switches the outputs on, and bad values are described",
          "[observability][outputs]") {
  const std::string value = GENERATE("60", "a minute");
  const std::map<std::string, std::string> variables{{"KCLXX_METRICS_DIR", "/var/lib/metrics"},
                                                     {"KCLXX_CLOUDWATCH_SECONDS", value}};
  const auto look_up = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<std::string> problems;
  const metrics_options options = with_environment(metrics_options{}, look_up, problems);
  CHECK(options.directory == "/var/lib/metrics");
  if (value == "60") {
    CHECK(options.cloudwatch_interval == 60s);
    CHECK(problems.empty());
  } else {
    CHECK(options.cloudwatch_interval == 0s);
    CHECK(problems == std::vector<std::string>{
                          "KCLXX_CLOUDWATCH_SECONDS=a minute is not a number of seconds from 0 to "
                          "86400: it is ignored"});
  }
  const auto nothing = [](const char*) { return std::nullopt; };
  CHECK(with_environment(metrics_options{}, nothing, problems).directory.empty());
}

TEST_CASE(
    "an observer that does not return is given up, and does not keep the outputs from their last "
    "figures",
    "[observability][outputs]") {
  watched_folder watched;
  const auto slow = std::make_shared<blocking>();
  auto both = watch(run_options{.metrics = {.directory = watched.directory,
                                            .write_interval = std::chrono::milliseconds::max(),
                                            .remove_at_end = false,
                                            .cloudwatch_interval = 1h},
                                .observers = {slow}},
                    &watched.log);
  both->observe(observer::lease_gained{});
  slow->entered.wait();
  both->observe(observer::batch_delivered{.records = 4711});
  CHECK_FALSE(both->finish(clock::now() + 10ms));
  CHECK(watched.has("} 4711\n"));
  CHECK(watched.log.await(R"("Records":4711)"));
  both.reset();  // does not wait either
  slow->released.come();
}

TEST_CASE("names have valid UTF-8 for all who watch", "[observability][outputs]") {
  class named final : public observer {
   public:
    void on_event(const observer::event_source& source, const observer::shard_event&) override {
      names = *source.shard;
    }
    observer::shard_names names;
  };
  const auto seen = std::make_shared<named>();
  const auto watching = observation::make({.observers = {seen}},
                                          {"",
                                           "ord\xff"
                                           "ers",
                                           "bill\xc3ing", "\x80"},
                                          {.write = {}, .write_text = {}, .observer_threw = {}});
  watching->observe(observer::lease_gained{});
  CHECK(watching->finish(in_time()));
  CHECK(seen->names.stream_name ==
        "ord\uFFFD"
        "ers");
  CHECK(seen->names.application_name == "bill\uFFFDing");
  CHECK(seen->names.worker_id == "\uFFFD");
}

TEST_CASE("nothing is made when nobody watches", "[observability][outputs]") {
  CHECK(observation::make({}, {}, {}) == nullptr);
}

}  // namespace kclxx::observability
