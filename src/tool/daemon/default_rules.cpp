// SPDX-License-Identifier: Apache-2.0
// What must be there, and defaults that are seldom what is wanted.
#include <algorithm>
#include <regex>

#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/limits.hpp"
#include "tool/daemon/spelling.hpp"
#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

bool is_blank(const property* one) { return one == nullptr || trimmed(one->value).empty(); }

bool is_number_above_0(const property* one) {
  return one != nullptr && whole_number(trimmed(one->value)).value_or(0) > 0;
}

/// A diagnostic at a key that is there with a useless value, or at no line when it is not.
diagnostic at_key_or_nowhere(const property* place, severity level, const std::string& key,
                             const std::string& problem, std::string reason, std::string fix) {
  if (place != nullptr) {
    return diagnostic_at(*place, level, place->key + " " + problem, std::move(reason),
                         std::move(fix));
  }
  return {level, 0, "", key + " is not set", std::move(reason), std::move(fix)};
}

void require(const properties& all, kcl_version kcl, const std::string& key, const std::string& fix,
             std::vector<diagnostic>& problems) {
  const property* const one = effective(all, key, kcl);
  if (!is_blank(one)) return;
  problems.push_back(at_key_or_nowhere(one, severity::error, key, "is empty",
                                       "The daemon does not start without it.", fix));
}

void check_table_name(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  const property* const table = effective(all, "tableName", kcl);
  const property* const name = is_blank(table) ? effective(all, "applicationName", kcl) : table;
  if (is_blank(name)) return;
  static const std::regex allowed("[A-Za-z0-9_.-]{3,255}");
  if (std::regex_match(name->value, allowed)) return;
  problems.push_back(diagnostic_at(*name, severity::error, name->key + " cannot name a table",
                                   "It is the lease table's name, and DynamoDB refuses it.",
                                   "Write 3 to 255 of A-Z a-z 0-9 _ . -"));
}

void check_stream(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  const property* const arn = effective(all, "streamArn", kcl);
  if (kcl == kcl_version::kcl1 || is_blank(arn)) {
    require(all, kcl, "streamName", "Name the stream to read.", problems);
    return;
  }
  const property* const region = effective(all, "regionName", kcl);
  if (!is_blank(region) &&
      arn->value.find(":kinesis:" + region->value + ":") == std::string::npos) {
    problems.push_back(
        diagnostic_at(*region, severity::warning, "regionName is not the region of streamArn",
                      "The stream is looked for in this region.", "Correct one of them."));
  }
  const property* const name = effective(all, "streamName", kcl);
  if (is_blank(name) || arn->value.ends_with("/" + name->value)) return;
  problems.push_back(
      diagnostic_at(*name, severity::warning, "streamName is not the stream of streamArn",
                    "The ARN takes precedence; this name is ignored.", "Remove one of them."));
}

void check_start(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  const char* const timestamp = kcl == kcl_version::kcl1 ? "timestampAtInitialPositionInStream"
                                                         : "initialPositionInStreamExtended";
  if (effective(all, "initialPositionInStream", kcl) != nullptr ||
      effective(all, timestamp, kcl) != nullptr) {
    return;
  }
  problems.push_back(
      {severity::warning, 0, "", "initialPositionInStream is not set",
       "A shard without a checkpoint starts at LATEST: records that were put before the "
       "first worker was ready are never read.",
       "initialPositionInStream = TRIM_HORIZON, or LATEST if you want that."});
}

/// The steps from KCL 2 to 3, of which a core before 3.5 has one less.
void check_migration(const properties& all, kcl_version kcl, const std::string& core,
                     std::vector<diagnostic>& problems) {
  const property* const step = effective(all, "clientVersionConfig", kcl);
  if (kcl != kcl_version::kcl3 || step == nullptr) return;
  const std::string value = lower(step->value);
  const bool has_first_step =
      core.empty() || compare_versions(core, "3.5.0") != std::strong_ordering::less;
  if (value.ends_with("_phase1") && !has_first_step) {
    problems.push_back(diagnostic_at(*step, severity::error, step->key + " is of KCL 3.5 and later",
                                     "KCL " + core + " does not start with it.", "Use --kcl 3."));
  } else if (value.ends_with("_2x") && has_first_step) {
    problems.push_back(diagnostic_at(
        *step, severity::warning, step->key + " ends the time in which KCL 2 can be used",
        "It lets the KCL write rows into the lease table that no worker of 2.x can read: one that "
        "runs takes no further shards, one that starts gets none.",
        step->value + "_PHASE1 until all workers are of 3.x. The way back is in " +
            "docs/kcl-versions.md#back-to-kcl-2"));
  }
}

void check_region(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  if (kcl == kcl_version::kcl1) return;  // another SDK, which looks for it in another way
  const property* const region = effective(all, "regionName", kcl);
  if (!is_blank(region)) return;
  problems.push_back(
      at_key_or_nowhere(region, severity::warning, "regionName", "is empty",
                        "The region comes from AWS_REGION, the AWS profile or the EC2 "
                        "instance; where none has one, the daemon does not start.",
                        "regionName = the region of the stream."));
}

void check_fan_out(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  const property* const mode = effective(all, "retrievalMode", kcl);
  if (mode != nullptr && lower(mode->value) != "default") return;
  if (!uses_fan_out(all, kcl)) return;
  problems.push_back(at_key_or_nowhere(
      mode, severity::warning, "retrievalMode", "is DEFAULT",
      "The daemon uses enhanced fan-out: it registers a consumer with the stream, which is billed "
      "per shard and hour, and per GB.",
      "retrievalMode = POLLING, or FANOUT if you want that."));
}

/// Keys of the other way to read.
void check_retrieval_keys(const properties& all, kcl_version kcl,
                          std::vector<diagnostic>& problems) {
  const property* const mode = effective(all, "retrievalMode", kcl);
  if (kcl == kcl_version::kcl1 || mode == nullptr) return;
  const std::string word = lower(mode->value);
  for (const property& one : all) {
    const bool is_of_fan_out = one.key.starts_with("fanoutConfig.");
    const bool is_of_polling =
        std::find(polling_keys.begin(), polling_keys.end(), one.key) != polling_keys.end();
    if (!(word == "polling" && is_of_fan_out) && !(word == "fanout" && is_of_polling)) continue;
    problems.push_back(diagnostic_at(one, severity::warning, one.key + " has no effect",
                                     "retrievalMode is " + mode->value + ".",
                                     "Remove one of them."));
  }
}

void check_shutdown(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  if (kcl == kcl_version::kcl1) return;  // its default is 5000, and 0 leaves it
  const property* const grace = effective(all, "shutdownGraceMillis", kcl);
  if (grace != nullptr && whole_number(trimmed(grace->value)).value_or(1) != 0) return;
  problems.push_back(at_key_or_nowhere(
      grace, severity::warning, "shutdownGraceMillis", "is 0",
      "On SIGTERM the daemon exits at once: no child receives shutdownRequested, and what was done "
      "since the last checkpoint is done again elsewhere.",
      "shutdownGraceMillis = 25000, and less than your supervisor waits before SIGKILL."));
}

void check_stuck_child(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  if (effective(all, "timeoutInSeconds", kcl) != nullptr ||
      is_number_above_0(effective(all, "logWarningForTaskAfterMillis", kcl))) {
    return;
  }
  problems.push_back({severity::warning, 0, "",
                      "neither timeoutInSeconds nor logWarningForTaskAfterMillis is set",
                      "The daemon waits indefinitely for a stuck child, and logs nothing.",
                      "logWarningForTaskAfterMillis = 60000 logs it. timeoutInSeconds halts the "
                      "whole worker, without its graceful shutdown."});
}

}  // namespace

void check_required(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  require(all, kcl, "executableName", "Name the program to start for each shard.", problems);
  require(all, kcl, "applicationName", "Name the application; it is also the lease table's name.",
          problems);
  if (kcl == kcl_version::kcl3) {
    require(all, kcl, "AwsCredentialsProvider",
            "AwsCredentialsProvider = DefaultCredentialsProvider", problems);
  } else {
    require(all, kcl, "AWSCredentialsProvider",
            "AWSCredentialsProvider = DefaultAWSCredentialsProviderChain", problems);
  }
  check_stream(all, kcl, problems);
  check_table_name(all, kcl, problems);
}

void check_defaults(const properties& all, kcl_version kcl, const machine& system,
                    std::vector<diagnostic>& problems) {
  check_start(all, kcl, problems);
  if (!system.has_region) check_region(all, kcl, problems);
  check_migration(all, kcl, system.core, problems);
  check_fan_out(all, kcl, problems);
  check_retrieval_keys(all, kcl, problems);
  check_shutdown(all, kcl, problems);
  check_stuck_child(all, kcl, problems);
}

void check_kcl(const kcl_choice& kcl, std::vector<diagnostic>& problems) {
  const auto add = [&](std::string problem, std::string reason, std::string fix) {
    problems.push_back({severity::warning, 0, "KCL " + std::string(kcl.core_version()),
                        std::move(problem), std::move(reason), std::move(fix)});
  };
  if (kcl.which == kcl_version::kcl1) {
    add("its support has ended, on 30 January 2026",
        "AWS publishes no more releases of KCL 1.x, not for security either.", "Move to KCL 3.x.");
  } else if (compare_versions(kcl.core_version(), "2.6.1") < 0) {
    add("it can stop processing shards when the stream's capacity changes",
        "AWS recommends 2.6.1 or later, to avoid a rare condition of 2.6.0 and earlier.",
        "Use --kcl 3, or --kcl 2, which is " + std::string(tested_parts(kcl_version::kcl2).core) +
            ".");
  }
}

}  // namespace kclxx::tool
