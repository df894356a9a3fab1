// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatcher.hpp"

#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
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
    : make_processor_(std::move(make_processor)),
      conversation_(std::move(with)),
      log_(log),
      checkpointer_(conversation_) {}

void dispatcher::run() {
  while (auto call = conversation_->next_call()) {
    std::optional<std::string> failure;
    try {
      dispatch(*call);
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
  processor_.reset();
}

void dispatcher::dispatch(const session::call& call) {
  switch (call.what) {
    case session::callback::initialize:
      return initialize(call);
    case session::callback::process_records:
      return processor_->process_records(call.batch, checkpointer_);
    case session::callback::lease_lost:
      return processor_->lease_lost();
    case session::callback::shard_ended:
      return processor_->shard_ended(checkpointer_);
    case session::callback::shutdown_requested:
      return processor_->shutdown_requested(checkpointer_);
  }
}

void dispatcher::initialize(const session::call& call) {
  log_.set_shard(call.shard_id);
  shard_context::fields fields;
  fields.shard_id = call.shard_id;
  fields.start_position = call.start_position;
  fields.stop_token = conversation_->stop_token();
  fields.stream_name = environment("KCLXX_STREAM_NAME");
  fields.application_name = environment("KCLXX_APPLICATION_NAME");
  fields.worker_id = environment("KCLXX_WORKER_ID");
  context_ = std::make_unique<shard_context>(std::move(fields));
  processor_ = make_processor_();
  if (!processor_) throw std::logic_error("the processor factory returned no processor");
  processor_->initialize(*context_);
}

}  // namespace kclxx::runtime
