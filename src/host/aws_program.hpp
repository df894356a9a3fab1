// SPDX-License-Identifier: Apache-2.0
// Calls of the program aws, with the user's credentials.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/lease_table/stream_position.hpp"
#include "tool/process/program.hpp"

namespace kclxx::host {

/// Runs aws with these arguments and --output json, whatever comes of it.
/// Blocking: until it has ended. Errors: command_error when there is no aws; cancelled.
tool::program_result run_aws(std::vector<std::string> arguments,
                             const std::vector<std::string>& options);

/// What aws has printed; nothing: it failed with the error of that name. Errors: command_error when
/// it failed otherwise.
std::optional<std::string> output_unless(std::string_view error_name, tool::program_result aws);

/// What a scan of a table prints; nothing: there is no such table. Blocking, errors: as above.
std::optional<std::string> scan_dynamodb(const std::string& table,
                                         const std::vector<std::string>& options);

/// What `aws kinesis` prints. Blocking, errors: as above.
std::string ask_kinesis(std::vector<std::string> arguments,
                        const std::vector<std::string>& options);

/// The shards of a stream, closed ones too. Blocking, errors: as above; bad_stream_answer.
std::vector<lease_table::stream_shard> list_shards(const std::string& stream,
                                                   const std::vector<std::string>& options);

}  // namespace kclxx::host
