// SPDX-License-Identifier: Apache-2.0
// The contract of every store, and a folder that fails.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <kclxx/archive/commit_log.hpp>
#include <kclxx/archive/parking_lot.hpp>
#include <kclxx/archive/testing.hpp>
#include <kclxx/processing.hpp>
#include <kclxx/shard_context.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

/// The error of the next calls: [0] for files, [1] for folders.
std::atomic<int> fsync_error[2];
std::atomic<int> fsync_calls;

}  // namespace

// Replaces the function of the C library.
extern "C" int fsync(int fd) {
  struct stat about {};
  ++fsync_calls;
  ::fstat(fd, &about);
  if (const int error = fsync_error[S_ISDIR(about.st_mode) ? 1 : 0]) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace kclxx::test {

namespace {

namespace fs = std::filesystem;
using archive::object;
using archive::open_store;
using archive::renaming;
using names = std::vector<std::string>;

class failing_fsync {
 public:
  failing_fsync(bool of_folders, int error) : of_folders_(of_folders) {
    fsync_error[of_folders] = error;
  }
  failing_fsync(const failing_fsync&) = delete;
  failing_fsync& operator=(const failing_fsync&) = delete;
  ~failing_fsync() { fsync_error[of_folders_] = 0; }

 private:
  bool of_folders_;
};

std::size_t files_in(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) ++count;
  }
  return count;
}

/// Checks the contract of every store.
void require_contract(archive::store& store) {
  store.put(std::vector<object>{{"a/b/1", "one"}, {"a/b/2", std::string("\0two", 4)}});
  CHECK(store.get("a/b/1") == "one");
  CHECK(store.get("a/b/2") == std::string("\0two", 4));
  CHECK_FALSE(store.get("a/b/3"));
  CHECK_FALSE(store.get("x/y/3"));
  CHECK(store.put_if_absent({"a/b/3", "three"}));
  CHECK_FALSE(store.put_if_absent({"a/b/3", "four"}));
  CHECK(store.get("a/b/3") == "three");

  auto found = store.list("a");
  std::sort(found.begin(), found.end());
  CHECK(found == names{"a/b/1", "a/b/2", "a/b/3"});
  CHECK(store.list("nowhere").empty());

  const std::vector<renaming> renamings{{"a/b/1", "c=%41/d/1"}, {"a/b/2", "c=%41/2"}};
  store.move(renamings);
  store.move(renamings);
  CHECK(store.get("c=%41/d/1") == "one");
  CHECK_FALSE(store.get("a/b/1"));
  CHECK_THROWS_AS(store.move(std::vector<renaming>{{"a/b/9", "c/9"}}), std::system_error);

  store.remove(names{"a/b/3", "a/b/9"});
  store.remove(names{"a/b/3"});
  CHECK(store.list("a").empty());
}

}  // namespace

TEST_CASE("a folder and a memory are stores") {
  archive::testing::memory_store memory;
  require_contract(memory);
  const temporary_folder folder;
  require_contract(*open_store(folder.path()));
  CHECK(files_in(folder.path()) == 2);
}

TEST_CASE("of several workers that make one object at the same time, one does") {
  const temporary_folder folder;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> makers = 0;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < 4; ++worker) {
      threads.emplace_back([&, worker] {
        // Each has a store of its own, as on another host.
        const auto store = open_store(folder.path());
        const std::string content = std::to_string(worker);
        if (store->put_if_absent({"commits/" + std::to_string(round), content})) ++makers;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(makers == 1);
  }
  CHECK(files_in(folder.path()) == 50);
}

TEST_CASE("a write that fails leaves nothing") {
  const temporary_folder folder;
  const auto store = open_store(folder.path());
  rlimit former{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &former) == 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = former.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const object large{"a/large", std::string(5000, 'x')};
  CHECK_THROWS_AS(store->put(std::vector{large}), std::system_error);
  CHECK_THROWS_AS(store->put_if_absent(large), std::system_error);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &former) == 0);
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a folder that has gone is an outage, and is not made again") {
  const temporary_folder outside;
  const fs::path root = outside.path() / "archive";
  CHECK_THROWS_AS(open_store(root), std::system_error);
  CHECK_FALSE(fs::exists(root));
  fs::create_directory(root);
  const auto store = open_store(root);
  store->put_if_absent({"a/1", "one"});
  fs::rename(root, outside.path() / "elsewhere");
  const auto check_gone = [](const auto& call) {
    try {
      call();
      FAIL("it went on");
    } catch (const std::exception& error) {
      CHECK(archive::is_outage(error));
      CHECK_THAT(error.what(), Catch::Matchers::Contains("the archive is gone"));
    }
  };
  for (const bool is_there : {false, true}) {
    if (is_there) fs::create_directory(root);  // such as an empty mount point
    check_gone([&] { store->put_if_absent({"a/2", "two"}); });
    check_gone([&] { store->put(std::vector<object>{{"a/2", "two"}}); });
    check_gone([&] { static_cast<void>(store->get("a/1")); });
    check_gone([&] { static_cast<void>(store->list("a")); });
    check_gone([&] { store->move(std::vector<renaming>{{"a/1", "b/1"}}); });
    check_gone([&] { store->remove(names{"a/1"}); });
  }
  CHECK(fs::is_empty(root));
  fs::remove(root);
  fs::rename(outside.path() / "elsewhere", root);
  CHECK(store->get("a/1") == "one");
}

TEST_CASE("a folder that needs no sync is fit, and a folder that cannot be synced is not") {
  const temporary_folder folder;
  const auto store = open_store(folder.path());
  {
    const failing_fsync of_folder(true, GENERATE(EINVAL, ENOSYS, EOPNOTSUPP));
    CHECK(store->put_if_absent({"a/1", "one"}));
  }
  {
    const failing_fsync of_folder(true, EIO);
    CHECK_THROWS_AS(store->put_if_absent({"a/2", "two"}), std::system_error);
  }
  {
    const failing_fsync of_file(false, EINVAL);
    CHECK_THROWS_AS(store->put(std::vector<object>{{"a/3", "three"}}), std::system_error);
  }
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a commit in a folder has as many calls of fsync as cost_of says") {
  const temporary_folder folder;
  const auto store = open_store(folder.path());
  archive::commit_log log(
      store, *detail::service_access::make<shard_context>({.shard_id = "shard-0"}, nullptr));
  const auto files = [] {
    return std::vector<archive::file>{{"hour=00", ".txt", "a"}, {"hour=01", ".txt", "b"}};
  };
  REQUIRE(log.try_commit(files(), sequence_position("1")));
  fsync_calls = 0;
  REQUIRE(log.try_commit(files(), sequence_position("2")));
  CHECK(static_cast<std::uint64_t>(fsync_calls.load()) == archive::cost_of(2).syncs);
}

TEST_CASE("what a process has left that was killed while it parked is removed at the next start") {
  const temporary_folder folder;
  const auto store = open_store(folder.path());
  const auto lot = std::make_shared<archive::parking_lot>(store);
  const std::string parked = "_kclxx_parked/unknown/unknown/shard-0/1.0.jsonl";
  store->put(std::vector<object>{{parked, "{}"}, {parked + ".5f0c.part", "{"}});
  lot->prepare(*detail::service_access::make<shard_context>({.shard_id = "shard-0"}, nullptr));
  CHECK(store->list("_kclxx_parked") == names{parked});
}

TEST_CASE("a commit that is listed and cannot be read is an outage") {
  const temporary_folder folder;
  const fs::path log_folder = folder.path() / "_kclxx/unknown/unknown/shard-0";
  fs::create_directories(log_folder);
  fs::create_symlink("nowhere", log_folder / "000000000005");
  archive::commit_log log(open_store(folder.path()), *detail::service_access::make<shard_context>(
                                                         {.shard_id = "shard-0"}, nullptr));
  CHECK_THROWS_WITH(log.position(),
                    Catch::Matchers::Contains("000000000005 is listed, and cannot be read"));
}

TEST_CASE("a prefix that leaves no room for the names of files is refused") {
  ::setenv("AWS_REGION", "eu-central-1", 1);
  CHECK_NOTHROW(open_store("s3://bucket/" + std::string(167, 'p')));
  CHECK_THROWS_AS(open_store("s3://bucket/" + std::string(168, 'p')), std::invalid_argument);
}

TEST_CASE("a record that is parked again is one object") {
  const auto store = std::make_shared<archive::testing::memory_store>();
  failure_policy policy{.bad_record = bad_record::park,
                        .lot = std::make_shared<archive::parking_lot>(store)};
  testing::worker worker(
      each([](const record&) { throw permanent_error("bad"); }, std::move(policy)));
  // The record is parked, and then the worker crashes before its checkpoint.
  store->on_step = [&, step = 0]() mutable {
    if (++step == 2) worker.crash();
  };
  worker.initialize("shard-0").deliver({"bad"}).resume().end_shard();
  const auto objects = store->objects();
  REQUIRE(objects.size() == 1);
  const auto& [name, content] = *objects.begin();
  CHECK(name == "_kclxx_parked/unknown/unknown/shard-0/1.0.jsonl");
  CHECK_THAT(content, Catch::Matchers::Contains(R"("data":"YmFk")"));
}

}  // namespace kclxx::test
