// SPDX-License-Identifier: Apache-2.0
// forking_child JOURNAL FORM: notes each record that a handler gets in the file JOURNAL, and forks
// at the record "fork". The copy returns to the library. At "fork and throw" it throws, at "fork
// and end" it calls _exit, and at "fork and run" it executes a program.
#include <chrono>
#include <fcntl.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <kclxx/kclxx.hpp>

namespace {

using namespace std::chrono_literals;
using kclxx::record;

std::string journal;

/// Appends a line in one write, so that the lines of several processes do not mix.
void note(const std::string& text) {
  const int file = ::open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string line = text + "\n";
  if (::write(file, line.data(), line.size()) == -1) ::_exit(98);
  ::close(file);
}

/// Returns whether this is a copy now.
bool process(const record& record) {
  const std::string what(record.data());
  note(what);
  if (!what.starts_with("fork")) return false;
  const pid_t copy = ::fork();
  if (copy == 0) {
    if (what == "fork and throw") throw std::runtime_error("in the copy");
    if (what == "fork and end") ::_exit(3);
    if (what == "fork and run") ::execlp("sh", "sh", "-c", "exit 4", nullptr);
    return true;
  }
  int status = 0;
  ::waitpid(copy, &status, 0);
  note("copy " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
  return false;
}

void process_batch(const kclxx::record_batch& batch) {
  for (const record& record : batch) {
    if (process(record)) return;
  }
}

/// A processor without a form.
class plain final : public kclxx::record_processor {
 public:
  [[nodiscard]] kclxx::checkpoint_mode mode() const override {
    return kclxx::checkpoint_mode::manual;
  }
  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    process_batch(batch);
  }
};

/// Forks in the handler of a checkpoint. Timers get the other records.
class elsewhere final : public kclxx::record_processor {
 public:
  explicit elsewhere(const kclxx::shard_context& shard) : shard_(shard) {}
  [[nodiscard]] kclxx::checkpoint_mode mode() const override {
    return kclxx::checkpoint_mode::manual;
  }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    for (const record& record : batch) {
      const auto shared = std::make_shared<kclxx::record>(record);
      if (record.data().starts_with("fork")) {
        checkpointer.async_checkpoint(record,
                                      [shared, batch](std::error_code) { process(*shared); });
      } else {
        shard_.after(0ms, [shared, batch] { process(*shared); });
      }
    }
  }

 private:
  const kclxx::shard_context& shard_;
};

kclxx::processor_factory make(const std::string& form) {
  const auto one_by_one = [](const record& record) { process(record); };
  const kclxx::parallel_options side_by_side{.lanes = 4, .order = kclxx::order::none};
  if (form == "each") return kclxx::each(one_by_one);
  if (form == "batches") return kclxx::batches(process_batch);
  if (form == "linger") return kclxx::batches(process_batch, {}, {.linger = 50ms});
  if (form == "gathered")
    return kclxx::batches(process_batch, {}, {.max_records = 4, .linger = 50ms});
  if (form == "parallel") {
    return kclxx::parallel(kclxx::record_handler(one_by_one), {}, side_by_side);
  }
  if (form == "completions") {
    return kclxx::parallel(
        [](kclxx::completion done) {
          process(done.record());
          done.complete();
        },
        {}, side_by_side);
  }
  if (form == "elsewhere") {
    return kclxx::processor_factory(
        [](const kclxx::shard_context& shard) { return std::make_unique<elsewhere>(shard); });
  }
  return kclxx::processor_factory(
      [](const kclxx::shard_context&) { return std::make_unique<plain>(); });
}

}  // namespace

int main(int, char** argv) {
  journal = argv[1];
  return kclxx::run(make(argv[2]));
}
