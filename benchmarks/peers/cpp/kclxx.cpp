// SPDX-License-Identifier: Apache-2.0
// kclxx, measured as the other clients are: it adds up the sizes of the records and checkpoints
// each batch at its last record. --request does not wait for the daemon's answer, --checkpoint
// does. --each has a handler of single records, --batches a handler of batches, and --gather one of
// the records of several calls, up to RECORDS or the default limit of memory. It does not use
// <iostream>, whose locales cost an idle process 0.4 MB.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <kclxx/kclxx.hpp>
#include <kclxx/processing/batches.hpp>
#include <kclxx/processing/each.hpp>

namespace {

class count_bytes : public kclxx::record_processor {
 public:
  explicit count_bytes(bool wait) : wait_(wait) {}
  ~count_bytes() override { std::fprintf(stderr, "%zu bytes\n", bytes_); }

  [[nodiscard]] kclxx::checkpoint_mode mode() const override {
    return kclxx::checkpoint_mode::manual;
  }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    for (const kclxx::record& record : batch) bytes_ += record.data().size();
    if (batch.empty()) return;
    if (wait_) {
      checkpointer.checkpoint(batch);
    } else {
      checkpointer.async_checkpoint(batch);
    }
  }

 private:
  bool wait_;
  std::size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc >= 2 ? argv[1] : "";
  if (how != "--request" && how != "--checkpoint" && how != "--each" && how != "--batches" &&
      how != "--gather") {
    std::fputs(
        "usage: kclxx_child --request | --checkpoint | --each | --batches | --gather [RECORDS]\n",
        stderr);
    return 2;
  }
  kclxx::run_options options;
  if (how == "--each" || how == "--batches" || how == "--gather") {
    options.checkpoint_interval = std::chrono::milliseconds(0);
    std::size_t bytes = 0;
    const auto add = [&bytes](const kclxx::record& record) { bytes += record.data().size(); };
    const auto add_all = [&add](const kclxx::record_batch& batch) {
      for (const kclxx::record& record : batch) add(record);
    };
    kclxx::batch_options gathering;
    if (how == "--gather") gathering.linger = std::chrono::seconds(1);
    if (argc > 2) gathering.max_records = std::strtoull(argv[2], nullptr, 10);
    const int status = kclxx::run(
        how == "--each" ? kclxx::each(add) : kclxx::batches(add_all, {}, gathering), options);
    std::fprintf(stderr, "%zu bytes\n", bytes);
    return status;
  }
  options.checkpoint_interval = std::chrono::milliseconds(0);  // each batch, as the other clients
  return kclxx::run([&] { return std::make_unique<count_bytes>(how == "--checkpoint"); }, options);
}
