// SPDX-License-Identifier: Apache-2.0
#include "host/aws_program.hpp"

#include <utility>

#include "tool/command_error.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \r\n") + 1);
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

}  // namespace

program_result run_aws(std::vector<std::string> arguments,
                       const std::vector<std::string>& options) {
  if (!find_program("aws")) {
    cannot_set_up(
        "aws is not in PATH; on Debian: apt-get install awscli. Or let it run elsewhere: aws "
        "dynamodb scan --output json --table-name TABLE, and give what it prints to kclxx leases "
        "-");
  }
  arguments.insert(arguments.begin(), "aws");
  arguments.insert(arguments.end(), {"--output", "json"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments);
}

std::optional<std::string> output_unless(std::string_view error_name, program_result aws) {
  if (aws.end.is_success()) return std::move(aws.output);
  if (aws.error.find(error_name) != std::string::npos) return std::nullopt;
  cannot_set_up("aws ended with " + to_string(aws.end) + ": " + last_line(aws.error));
}

std::optional<std::string> scan_dynamodb(const std::string& table,
                                         const std::vector<std::string>& options) {
  return output_unless(
      "ResourceNotFoundException",
      run_aws({"dynamodb", "scan", "--table-name", table, "--consistent-read"}, options));
}

std::string ask_kinesis(std::vector<std::string> arguments,
                        const std::vector<std::string>& options) {
  arguments.insert(arguments.begin(), "kinesis");
  return output_unless("(no error is expected)", run_aws(arguments, options)).value_or("");
}

std::vector<lease_table::stream_shard> list_shards(const std::string& stream,
                                                   const std::vector<std::string>& options) {
  return lease_table::parse_shards(ask_kinesis({"list-shards", "--stream-name", stream}, options));
}

}  // namespace kclxx::host
