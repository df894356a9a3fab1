// SPDX-License-Identifier: Apache-2.0
#include <kclxx/record_processor.hpp>

namespace kclxx {

void record_processor::initialize(const shard_context&) {}
void record_processor::lease_lost() {}
void record_processor::shard_ended(const checkpointer&) {}
void record_processor::shutdown_requested(const checkpointer&) {}

}  // namespace kclxx
