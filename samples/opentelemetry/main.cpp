// SPDX-License-Identifier: Apache-2.0
// Sends what kclxx measures to OpenTelemetry, under the names of its conventions for messaging.
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <opentelemetry/context/context.h>
#include <opentelemetry/metrics/provider.h>
#include <string>

#include <kclxx/kclxx.hpp>

namespace {

namespace metrics = opentelemetry::metrics;

class telemetry final : public kclxx::observer {
 public:
  void on_batch_delivered(const kclxx::event_source& source,
                          const kclxx::batch_delivered& event) override {
    consumed_->Add(event.records, attributes(source, "receive", "receive"));
  }
  void on_callback_ended(const kclxx::event_source& source,
                         const kclxx::callback_ended& event) override {
    if (event.callback != kclxx::callback_kind::process_records) return;
    record(*process_, event.duration, attributes(source, "process", "process", event.error));
  }
  void on_checkpoint_answered(const kclxx::event_source& source,
                              const kclxx::checkpoint_answered& event) override {
    record(*operation_, event.duration, attributes(source, "checkpoint", "settle", event.error));
  }

 private:
  using attribute_map = std::map<std::string, std::string>;

  static attribute_map attributes(const kclxx::event_source& source, const char* operation,
                                  const char* type, const std::string& error = {}) {
    const kclxx::shard_names& shard = *source.shard;
    attribute_map all{{"messaging.system", "aws_kinesis"},
                      {"messaging.operation.name", operation},
                      {"messaging.operation.type", type},
                      {"messaging.destination.partition.id", shard.shard_id}};
    if (shard.stream_name) all["messaging.destination.name"] = *shard.stream_name;
    if (shard.application_name) all["messaging.consumer.group.name"] = *shard.application_name;
    // Of few values: a checkpoint's error is a name, what a handler threw is any text.
    if (!error.empty()) all["error.type"] = error.find(' ') == std::string::npos ? error : "_OTHER";
    return all;
  }

  static void record(metrics::Histogram<double>& into, std::chrono::nanoseconds time,
                     const attribute_map& all) {
    into.Record(std::chrono::duration<double>(time).count(), all,
                opentelemetry::context::Context{});
  }

  // The program's own provider decides where they go; without one they go nowhere.
  opentelemetry::nostd::shared_ptr<metrics::Meter> meter_ =
      metrics::Provider::GetMeterProvider()->GetMeter("kclxx", kclxx::version);
  opentelemetry::nostd::unique_ptr<metrics::Counter<uint64_t>> consumed_ =
      meter_->CreateUInt64Counter("messaging.client.consumed.messages", "", "{message}");
  opentelemetry::nostd::unique_ptr<metrics::Histogram<double>> process_ =
      meter_->CreateDoubleHistogram("messaging.process.duration", "", "s");
  opentelemetry::nostd::unique_ptr<metrics::Histogram<double>> operation_ =
      meter_->CreateDoubleHistogram("messaging.client.operation.duration", "", "s");
};

}  // namespace

int main() {
  kclxx::run_options options;
  options.observers = {std::make_shared<telemetry>()};
  return kclxx::run(
      [](kclxx::record_batch batch) {
        for (const kclxx::record& record : batch) std::cout << record.data() << "\n";
      },
      options);
}
