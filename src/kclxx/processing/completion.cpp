// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>
#include <utility>

#include <kclxx/processing/completion.hpp>

#include "processing/taken_record.hpp"

namespace kclxx {

namespace {

std::exception_ptr failure(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

completion::completion() noexcept = default;
completion::completion(std::unique_ptr<detail::taken_record> taken) noexcept
    : taken_(std::move(taken)) {}
completion::completion(completion&&) noexcept = default;

completion& completion::operator=(completion&& other) noexcept {
  if (this == &other) return *this;
  if (taken_) fail(failure("the completion was overwritten before it was reported"));
  taken_ = std::move(other.taken_);
  return *this;
}

completion::~completion() {
  if (taken_) fail(failure("the completion was destroyed before it was reported"));
}

const record& completion::record() const noexcept { return taken_->record(); }
int completion::attempt() const noexcept { return taken_->attempt(); }

void completion::complete() noexcept {
  if (const auto taken = std::exchange(taken_, nullptr)) taken->complete();
}

void completion::fail(std::exception_ptr cause) noexcept {
  const auto taken = std::exchange(taken_, nullptr);
  if (!taken) return;
  taken->fail(cause ? std::move(cause)
                    : failure("the handler reported a failure without an exception"));
}

void completion::fail(std::string_view message) noexcept {
  fail(failure(std::string(message).c_str()));
}

void completion::touch() noexcept {
  if (taken_) taken_->touch();
}

}  // namespace kclxx
