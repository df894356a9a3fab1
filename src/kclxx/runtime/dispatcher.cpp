// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatcher.hpp"

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace kclxx::runtime {

namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace

dispatcher::dispatcher(processor_factory make_processor, std::shared_ptr<conversation> with,
                       logger& log)
    : conversation_(std::move(with)),
      log_(log),
      checkpointer_(conversation_),
      host_(std::move(make_processor), [this] {
        shard_context::fields fields;
        fields.stop_token = conversation_->stop_token();
        fields.stream_name = environment("KCLXX_STREAM_NAME");
        fields.application_name = environment("KCLXX_APPLICATION_NAME");
        fields.worker_id = environment("KCLXX_WORKER_ID");
        return fields;
      }) {}

void dispatcher::run() {
  while (auto call = conversation_->next_call()) {
    std::optional<std::string> failure;
    try {
      if (call->what == session::callback::initialize) log_.set_shard(call->shard_id);
      host_.run(*call, checkpointer_);
    } catch (const std::exception& error) {
      failure = error.what();
    } catch (...) {
      failure = "an exception that is not a std::exception";
    }
    // The batch's memory serves for the next line, which comes once the status is written.
    call.reset();
    if (failure) {
      conversation_->on_callback_threw(*failure);
    } else {
      conversation_->on_callback_returned();
    }
  }
  host_.destroy();
}

}  // namespace kclxx::runtime
