// SPDX-License-Identifier: Apache-2.0
// The daemon's own reader judges values. The rows below (what, why, fix) are about values that it
// accepts and about what it does not look at. In their texts {key} and {value} are the property's.
#include "host/daemon/check.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/trim.hpp>

#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

using boost::iequals;
using boost::trim_copy;

bool matches(std::string_view text, const char* pattern) {
  constexpr std::size_t max_size = 4096;  // std::regex recurses, and a longer text takes the stack
  static std::map<const char*, std::regex> compiled;
  return text.size() <= max_size &&
         std::regex_match(text.begin(), text.end(),
                          compiled.try_emplace(pattern, pattern).first->second);
}

/// A file, its daemon, and what was found so far.
struct checked_file {
  const properties& entries;
  const circumstances& where;
  std::vector<diagnostic> found{};
  bool lacks_required = false;  // the reader's refusal then repeats what was found here
  std::map<std::string, const property*, std::less<>> effective{};  // by the canonical key

  checked_file(const properties& file, const circumstances& around) : entries(file), where(around) {
    for (const property& entry : entries) effective[canonical_key(entry.key, kcl())] = &entry;
  }

  [[nodiscard]] kcl_version kcl() const { return where.kcl.which; }
  [[nodiscard]] const property* at(std::string_view key) const {
    const auto found = effective.find(key);
    return found == effective.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::string value(std::string_view key) const {
    const property* const entry = at(key);
    return entry == nullptr ? "" : trim_copy(entry->value);
  }
  [[nodiscard]] bool has(std::string_view key) const { return !value(key).empty(); }
  [[nodiscard]] bool is_clearly_zero(std::string_view key) const {
    return matches(value(key), "[-+]?0*");
  }

  void add(const property* place, severity level, std::string what, std::string why,
           std::string fix) {
    constexpr std::size_t most_shown = 200;
    for (std::string* text : {&what, &why, &fix}) {
      if (place == nullptr) break;
      boost::replace_all(*text, "{key}", place->key);
      boost::replace_all(*text, "{value}", place->value.substr(0, most_shown));
    }
    found.push_back({level, place == nullptr ? 0 : place->line,
                     place == nullptr ? "" : place->origin, std::move(what), std::move(why),
                     std::move(fix)});
  }
};

constexpr auto error = severity::error;
constexpr auto warning = severity::warning;

// --- What is missing ---------------------------------------------------------------------------

struct missing_row {
  severity level;
  std::string_view key;
  /// When the key counts as missing, also with some value. nullptr: when it is absent or blank.
  bool (*is_missing)(const checked_file&);
  const char* what;  // what to say when the key is absent; "": "KEY is not set"
  const char* why;
  const char* fix;
};

constexpr std::array<std::string_view, 5> polling_keys{
    "retryGetRecordsInSeconds", "maxGetRecordsThreadPool", "maxRecords",
    "idleTimeBetweenReadsInMillis", "millisBehindLatestThresholdForReducedTps"};

bool polls(const checked_file& file) {
  for (const reading& said : file.where.readings) {
    if (said.kind == "retrieval") return said.text == "POLLING";
  }
  return std::any_of(polling_keys.begin(), polling_keys.end(),
                     [&](auto key) { return file.has(key); });
}

const char* const no_start = "The daemon does not start without it.";

const missing_row missing_rows[] = {
    {error, "executableName", nullptr, "", no_start, "Name the program to start for each shard."},
    {error, "applicationName", nullptr, "", no_start,
     "Name the application; it is also the lease table's name."},
    {error, "AwsCredentialsProvider",
     [](const checked_file& file) {
       return file.kcl() == kcl_version::kcl3 && !file.has("AwsCredentialsProvider");
     },
     "", no_start, "AwsCredentialsProvider = DefaultCredentialsProvider"},
    {error, "AWSCredentialsProvider",
     [](const checked_file& file) {
       return file.kcl() == kcl_version::kcl2 && !file.has("AWSCredentialsProvider");
     },
     "", no_start, "AWSCredentialsProvider = DefaultAWSCredentialsProviderChain"},
    {error, "streamName",
     [](const checked_file& file) { return !file.has("streamName") && !file.has("streamArn"); }, "",
     no_start, "Name the stream to read."},
    {warning, "initialPositionInStream",
     [](const checked_file& file) {
       return !file.has("initialPositionInStream") && !file.has("initialPositionInStreamExtended");
     },
     "",
     "A shard without a checkpoint starts at LATEST: records that were put before the first worker "
     "was ready are never read.",
     "initialPositionInStream = TRIM_HORIZON, or LATEST if you want that."},
    {warning, "regionName",
     [](const checked_file& file) {
       return !file.where.has_region && !file.has("regionName") &&
              !(file.has("kinesisClient.region") && file.has("dynamoDbClient.region") &&
                file.has("cloudWatchClient.region"));
     },
     "",
     "The region comes from AWS_REGION, the AWS profile or the EC2 instance; without a region the "
     "daemon does not start.",
     "regionName = the region of the stream."},
    {warning, "retrievalMode",
     [](const checked_file& file) {
       const std::string mode = file.value("retrievalMode");
       return (mode.empty() || iequals(mode, "default")) && !polls(file);
     },
     "",
     "The daemon uses enhanced fan-out: it registers a consumer with the stream, which is billed "
     "per shard and hour, and per GB.",
     "retrievalMode = POLLING, or FANOUT if you want that."},
    {warning, "shutdownGraceMillis",
     [](const checked_file& file) { return file.is_clearly_zero("shutdownGraceMillis"); }, "",
     "On SIGTERM the daemon exits at once: no child receives shutdownRequested, and what was done "
     "since the last checkpoint is done again elsewhere.",
     "shutdownGraceMillis = 25000, and less than your supervisor waits before SIGKILL."},
    {warning, "logWarningForTaskAfterMillis",
     [](const checked_file& file) {
       return file.at("timeoutInSeconds") == nullptr &&
              file.is_clearly_zero("logWarningForTaskAfterMillis");
     },
     "neither timeoutInSeconds nor logWarningForTaskAfterMillis is set",
     "The daemon waits indefinitely for a stuck child, and logs nothing.",
     "logWarningForTaskAfterMillis = 60000 logs it. timeoutInSeconds halts the whole worker, "
     "without its graceful shutdown."},
};

void check_missing(checked_file& file) {
  for (const missing_row& row : missing_rows) {
    const bool is_missing = row.is_missing == nullptr ? !file.has(row.key) : row.is_missing(file);
    if (!is_missing) continue;
    file.lacks_required = file.lacks_required || row.level == error;
    const property* const place = file.at(row.key);
    const std::string key(row.key);
    const std::string what = place == nullptr          ? key + " is not set"
                             : file.value(key).empty() ? "{key} is empty"
                                                       : "{key} is {value}";
    file.add(place, row.level, *row.what == '\0' ? what : row.what, row.why, row.fix);
  }
}

// --- What a key is, with the value that it has -------------------------------------------------

struct key_row {
  severity level;
  std::string_view key;  ///< "": every key; with a dot at its end: every key that begins with it
  bool (*applies)(const checked_file&, const property&);
  const char* what;
  const char* why;
  const char* fix;
};

bool always(const checked_file&, const property&) { return true; }

bool is_no_table(const checked_file&, const property& entry) {
  return !entry.value.empty() && !matches(entry.value, "[A-Za-z0-9_.-]{3,255}");
}

bool is_of_table_streams(const checked_file&, const property& entry) {
  return matches(trim_copy(entry.value), "arn:[^:]*:dynamodb:.*");
}

bool is_step_before(const checked_file& file, const char* version) {
  return compare_versions(file.where.kcl.core_version(), version) < 0;
}

bool polls_by_mode(const checked_file& file, const property&) {
  return iequals(file.value("retrievalMode"), "polling");
}
bool is_unused_by_fan_out(const checked_file& file, const property& entry) {
  return iequals(file.value("retrievalMode"), "fanout") &&
         std::find(polling_keys.begin(), polling_keys.end(), entry.key) != polling_keys.end();
}

/// The whole number of a value. Nothing: it is none, which the daemon's reader tells.
std::optional<std::int64_t> number_in(const property& entry) {
  std::int64_t number = 0;
  std::string text = trim_copy(entry.value);
  if (text.starts_with('+')) text.erase(0, 1);  // Java reads it
  return read_number(text, number) ? std::optional(number) : std::nullopt;
}

/// Whether the number is at most `last`. 0 is not, since it counts as not set.
bool is_at_most(const property& entry, std::int64_t last) {
  const auto number = number_in(entry);
  return number && *number != 0 && *number <= last;
}

/// Whether the value names a class of AWS's SDK 1, which no daemon of KCL 3 has.
bool is_of_sdk1(const checked_file& file, const property& entry) {
  return file.kcl() == kcl_version::kcl3 &&
         matches(entry.value, "(.*,)?\\s*(com\\.amazonaws\\.|DefaultAWS).*");
}

const char* const no_effect = "{key} has no effect";
const char* const remove_it = "Remove it.";
const char* const one_of_them = "Remove one of them.";
const char* const no_such_table = "{key} cannot name a table";
const char* const table_letters = "Write 3 to 255 of A-Z a-z 0-9 _ . -";
const char* const no_table_stream = "{key} is the ARN of a DynamoDB table's stream";
const char* const on_demand =
    "The daemon makes a table that is billed on demand, and has no key for another mode.";

const key_row key_rows[] = {
    {error, "tableName", is_no_table, no_such_table,
     "It is the lease table's name, and DynamoDB refuses it.", table_letters},
    {error, "applicationName",
     [](const checked_file& file, const property& entry) {
       return !file.has("tableName") && is_no_table(file, entry);
     },
     no_such_table, "It is the lease table's name, and DynamoDB refuses it.", table_letters},
    {warning, "workerMetricsTableName", is_no_table, no_such_table,
     "DynamoDB refuses it, and the worker goes on without that table.", table_letters},
    {warning, "coordinatorStateTableName", is_no_table, no_such_table,
     "DynamoDB refuses it, and the worker goes on without that table.", table_letters},
    {error, "streamName", is_of_table_streams, no_table_stream, "This daemon reads Kinesis alone.",
     "docs/host/deployment.md#changes-of-a-dynamodb-table has the ways."},
    {error, "streamArn", is_of_table_streams, no_table_stream, "This daemon reads Kinesis alone.",
     "docs/host/deployment.md#changes-of-a-dynamodb-table has the ways."},
    {error, "streamName",
     [](const checked_file& file, const property& entry) {
       return !file.has("streamArn") && !trim_copy(entry.value).empty() &&
              !is_of_table_streams(file, entry) && !matches(entry.value, "[A-Za-z0-9_.-]{1,128}");
     },
     "{key} is \"{value}\", which cannot name a stream",
     "The daemon waits for a stream of this name without end.",
     "Write 1 to 128 of A-Z a-z 0-9 _ . -, with nothing after it."},
    {warning, "streamName",
     [](const checked_file& file, const property& entry) {
       return file.has("streamArn") && file.has("streamName") &&
              !file.value("streamArn").ends_with("/" + trim_copy(entry.value));
     },
     "{key} is not the stream of streamArn", "The ARN takes precedence; this name is ignored.",
     one_of_them},
    {warning, "regionName",
     [](const checked_file& file, const property& entry) {
       const std::string arn = file.value("streamArn");
       return arn.find(":kinesis:") != std::string::npos && file.has("regionName") &&
              arn.find(":kinesis:" + trim_copy(entry.value) + ":") == std::string::npos;
     },
     "{key} is not the region of streamArn", "The stream is looked for in this region.",
     "Correct one of them."},
    {error, "AwsCredentialsProvider", is_of_sdk1, "{key} names a class of AWS's SDK 1",
     "KCL 3 uses SDK 2, and the daemon does not start.",
     "AwsCredentialsProvider = DefaultCredentialsProvider; the others are in "
     "docs/host/deployment.md#credentials"},
    {warning, "initialPositionInStreamExtended",
     [](const checked_file&, const property& entry) {
       return matches(entry.value, "\\s*[0-9]{12,}\\s*");
     },
     "{key} looks like milliseconds", "It is in seconds since 1970: this is far in the future.",
     "Remove the last three digits."},
    {warning, "maxRecords",
     [](const checked_file&, const property& entry) {
       return matches(entry.value, "-[1-9][0-9]*|[1-9][0-9]{5,}|[2-9][0-9]{4}|1[0-9]{4}") &&
              entry.value != "10000";
     },
     "{key} is {value}", "Kinesis takes 1 to 10000, and refuses every other read.",
     "Write 10000 or less."},
    {warning, "timeoutInSeconds",
     [](const checked_file&, const property& entry) { return matches(entry.value, "-.*|0+"); },
     "{key} is {value}", "The whole worker halts at its first message to a child.",
     "Remove it, or write more than the slowest batch takes."},
    {warning, "maxActiveThreads",
     [](const checked_file& file, const property& entry) {
       // Without a limit a worker takes all shards that there are; no machine has so many children.
       constexpr std::int64_t unlimited = 10'000;
       const property* const leases = file.at("maxLeasesForWorker");
       const std::int64_t limit = leases == nullptr ? 0 : number_in(*leases).value_or(0);
       const auto threads = number_in(entry);
       return threads && *threads > 0 && *threads < (limit <= 0 ? unlimited : limit) + 2;
     },
     "{key} is {value}",
     "A shard keeps one thread of this pool, and the worker two. With more shards than that every "
     "shard hangs, without a line in the log.",
     "Remove it; or set maxLeasesForWorker, too, to two less."},
    {error, "failoverTimeMillis",
     [](const checked_file&, const property& entry) { return is_at_most(entry, 77); },
     "{key} is {value}",
     "Leases are renewed every third of it, less 25 ms, and Java refuses such an interval: the "
     "worker takes no shard, and leaves.",
     "Write 1000 or more."},
    {warning, "failoverTimeMillis",
     [](const checked_file&, const property& entry) {
       return is_at_most(entry, 999) && !is_at_most(entry, 77);
     },
     "{key} is {value}",
     "A worker that is busy for as long loses its leases to another worker, which repeats records.",
     "Write 1000 or more."},
    {error, "maxLeaseRenewalThreads",
     [](const checked_file&, const property& entry) { return is_at_most(entry, 1); },
     "{key} is {value}",
     "The pool begins with two threads, and Java refuses a smaller pool: the daemon does not "
     "start.",
     "Write 2 or more."},
    {error, "leaseAssignmentIntervalMillis",
     [](const checked_file&, const property& entry) { return is_at_most(entry, 51); },
     "{key} is {value}",
     "A worker looks for leases every half of it, less 25 ms, and Java refuses such an interval: "
     "the worker takes no shard, and leaves.",
     "Write 1000 or more."},
    {warning, "",
     [](const checked_file& file, const property& entry) {
       // The key's name has the unit.
       const std::string key = canonical_key(entry.key, file.kcl());
       const std::int64_t second = boost::icontains(key, "millis")      ? 1000
                                   : boost::ends_with(key, "InSeconds") ? 1
                                                                        : 0;
       constexpr std::int64_t day = 24 * 60 * 60;
       return second != 0 && number_in(entry).value_or(0) > day * second;
     },
     "{key} is {value}, more than a day",
     "The worker waits so long before it looks, tries again or gives up. A shard that waits for "
     "that is silent.",
     "Write less; the key's name has the unit."},
    {warning, "fanoutConfig.", polls_by_mode, no_effect, "retrievalMode is POLLING.", one_of_them},
    {warning, "", is_unused_by_fan_out, no_effect, "retrievalMode is FANOUT.", one_of_them},
    {warning, "validateSequenceNumberBeforeCheckpointing", always, no_effect,
     "The daemon accepts it and ignores it.", remove_it},
    {warning, "initialLeaseTableReadCapacity", always, no_effect, on_demand, remove_it},
    {warning, "initialLeaseTableWriteCapacity", always, no_effect, on_demand, remove_it},
    {warning, "maxLeasesToStealAtOneTime",
     [](const checked_file& file, const property&) {
       return file.kcl() == kcl_version::kcl3 && file.at("clientVersionConfig") == nullptr;
     },
     no_effect, "KCL 3 assigns leases; only the steps from KCL 2 steal them.", remove_it},
    {error, "shardPrioritization", always, "{key} cannot be set in a file",
     "The daemon does not start.", remove_it},
    {error, "clientVersionConfig",
     [](const checked_file& file, const property& entry) {
       return boost::iends_with(entry.value, "_PHASE1") && is_step_before(file, "3.5.0");
     },
     "{key} is of KCL 3.5 and later", "This KCL does not start with it.", "Use --kcl 3."},
    {warning, "clientVersionConfig",
     [](const checked_file& file, const property& entry) {
       return boost::iends_with(entry.value, "_2X") && !is_step_before(file, "3.5.0");
     },
     "{key} ends the time in which KCL 2 can be used",
     "It lets the KCL write rows into the lease table that no worker of 2.x can read: one that "
     "runs "
     "takes no further shards, one that starts gets none.",
     "{value}_PHASE1 until all workers are of 3.x. The way back is in "
     "docs/host/moving.md#back-to-kcl-2"},
    {warning, "",
     [](const checked_file&, const property& entry) {
       static const std::regex variable(
           "\\$\\{?[A-Za-z_]|\\$\\(|\\{\\{|%[A-Za-z_][A-Za-z0-9_]*%|<%");
       return std::regex_search(entry.value.substr(0, 4096), variable);
     },
     "{key} has a variable in \"{value}\"",
     "The daemon expands nothing: it takes the text as it is, the same in each worker.",
     "Write the value, or set it when the daemon starts: KCLXX_PROPERTY_{key}=\"$VALUE\" kclxx "
     "daemon "
     "run ..."},
    {warning, "",
     [](const checked_file&, const property& entry) {
       const std::string& text = entry.value;
       return text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
              text.back() == text.front();
     },
     "{key} is in quotes", "The quotes are part of the value.", "Remove them."},
    {warning, "",
     [](const checked_file&, const property& entry) {
       // Two bytes that make sense as UTF-8, each of them read as a character.
       static const std::regex twice("\xC3[\x82-\xB4]\xC2[\x80-\xBF]");
       return std::regex_search(entry.value.substr(0, 4096), twice);
     },
     "{key} has letters beyond ASCII, in UTF-8",
     "The daemon reads the file as ISO-8859-1 and gets other characters.",
     "Write each as \\u and four hexadecimal digits."},
};

void check_values(checked_file& file) {
  for (const property& entry : file.entries) {
    const std::string key = canonical_key(entry.key, file.kcl());
    for (const key_row& row : key_rows) {
      const bool is_it =
          row.key.empty() || row.key == key || (row.key.ends_with('.') && key.starts_with(row.key));
      if (is_it && row.applies(file, entry))
        file.add(&entry, row.level, row.what, row.why, row.fix);
    }
  }
}

// --- Keys that nobody reads, and those that are there twice ------------------------------------

/// How many letters must be inserted, removed or changed (Levenshtein).
std::size_t distance(std::string_view source, std::string_view target) {
  std::vector<std::size_t> row(target.size() + 1);
  for (std::size_t i = 0; i <= target.size(); ++i) row[i] = i;
  for (std::size_t i = 0; i < source.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < target.size(); ++j) {
      const std::size_t changed = diagonal + (source[i] == target[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[target.size()];
}

std::string nearest_key(const std::string& key, kcl_version kcl) {
  std::string_view best;
  const std::string text = boost::to_lower_copy(key);
  std::size_t least = std::max<std::size_t>(2, text.size() / 5) + 1;
  for (const property_row& row : property_table()) {
    constexpr std::size_t longest = 100;
    if (!row.is_in(kcl) || text.size() > longest || text.size() >= row.key.size() + least) continue;
    const std::size_t steps = distance(text, boost::to_lower_copy(std::string(row.key)));
    if (steps >= least) continue;
    least = steps;
    best = row.key;
  }
  return std::string(best);
}

void check_unknown(checked_file& file, const property& entry) {
  const char* const ignored = "The daemon ignores it, without a warning.";
  const std::string in(name_of(file.kcl()));
  if (entry.key.starts_with("\u00ef\u00bb\u00bf")) {
    return file.add(&entry, error, "the file begins with a byte order mark",
                    "The daemon reads it as part of the first key, which it then ignores.",
                    "Save the file without it.");
  }
  if (is_of_newer_daemons(entry.key)) {
    return file.add(&entry, warning, "{key} is a key of newer daemons than the one that is fetched",
                    ignored,
                    "Remove it, or use a daemon of 3.5.0 or later: "
                    "docs/host/moving.md#a-newer-daemon");
  }
  const std::string near = nearest_key(entry.key, file.kcl());
  if (iequals(near, entry.key)) {
    return file.add(&entry, warning, "{key} is misspelt: keys are case-sensitive", ignored,
                    "Write " + near + ".");
  }
  const kcl_version other_kcl =
      file.kcl() == kcl_version::kcl3 ? kcl_version::kcl2 : kcl_version::kcl3;
  const std::string suggestion = near.empty() ? remove_it : "Did you mean " + near + "?";
  if (find_row(entry.key, other_kcl) != nullptr) {
    return file.add(&entry, warning,
                    "{key} is a key of " + std::string(name_of(other_kcl)) + ", not of " + in,
                    ignored, near.empty() ? suggestion : suggestion + " Otherwise remove it.");
  }
  file.add(&entry, warning, "{key} is not a key of " + in, ignored, suggestion);
}

std::string place_of(const property& entry) {
  return entry.line != 0 ? "line " + std::to_string(entry.line) : entry.origin;
}

constexpr const char* undefined_order = "Both set the same field, in an undefined order.";

/// Pairs of keys for one field of the daemon, which applies keys in the order of a hash table.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> rivals{{
    {"workerId", "workerIdentifier"},
    {"initialPositionInStream", "initialPositionInStreamExtended"},
    {"regionName", "kinesisClient.region"},
    {"regionName", "dynamoDbClient.region"},
    {"regionName", "cloudWatchClient.region"},
    {"kinesisEndpoint", "kinesisClient.endpointOverride"},
    {"dynamoDBEndpoint", "dynamoDbClient.endpointOverride"},
}};

/// A daemon that is newer than the table of keys can have further ones.
bool is_known_to_reader(const checked_file& file, const property& entry) {
  return std::any_of(
      file.where.readings.begin(), file.where.readings.end(),
      [&](const reading& said) { return said.kind == "knows" && said.key == entry.key; });
}

void check_keys(checked_file& file) {
  std::map<std::string, const property*> later;
  for (std::size_t i = file.entries.size(); i-- > 0;) {
    const property& entry = file.entries[i];
    if (!is_known(entry.key, file.kcl()) && !is_known_to_reader(file, entry))
      check_unknown(file, entry);
    const property* const next = std::exchange(later[canonical_key(entry.key, file.kcl())], &entry);
    if (next == nullptr) continue;
    if (next->key == entry.key) {
      file.add(&entry, warning, "{key} is repeated (" + place_of(*next) + ")",
               "The last one counts; this one has no effect.", one_of_them);
    } else {
      file.add(&entry, warning, "{key} is repeated as " + next->key + " (" + place_of(*next) + ")",
               undefined_order, one_of_them);
    }
  }
  for (const auto& [key, rival] : rivals) {
    const property* const entry = file.at(key);
    const property* const second = file.at(rival);
    if (entry == nullptr || second == nullptr) continue;
    file.add(entry, warning,
             "{key} is set together with " + second->key + " (" + place_of(*second) + ")",
             undefined_order, one_of_them);
  }
}

// --- The program -------------------------------------------------------------------------------

std::string first_word(const std::string& command) { return command.substr(0, command.find(' ')); }

/// The command without its first word.
std::string rest_of(const std::string& command) {
  const auto next = command.find_first_not_of(' ', command.find(' '));
  return next == std::string::npos ? "" : command.substr(next);
}

/// The command that kclxx-share or kclxx capture is given to start. `command` itself: its program
/// is neither.
std::string started_by(const std::string& command) {
  const std::string program = first_word(command);
  std::string arguments = rest_of(command);
  const auto is_named = [&](const std::string& name) {
    return program == name || program.ends_with("/" + name);
  };
  if (is_named("kclxx-share")) return arguments.starts_with("-- ") ? rest_of(arguments) : arguments;
  if (!is_named("kclxx") || first_word(arguments) != "capture") return command;
  while (!arguments.empty() && first_word(arguments) != "--") arguments = rest_of(arguments);
  return rest_of(arguments);
}

/// The path with blanks that was meant, when there is a program of that name.
std::string path_with_blanks(const std::string& command, const executable_look& look) {
  for (auto end = command.find(' '); end != std::string::npos; end = command.find(' ', end + 1)) {
    std::string longer = command.substr(0, command.find(' ', end + 1));
    const executable_state state = look(longer);
    if (state == executable_state::ok || state == executable_state::not_executable) return longer;
  }
  return "";
}

constexpr const char* of_shell_in_name = "\"'~$`*";

void check_executable(checked_file& file) {
  const property* const place = file.at("executableName");
  if (place == nullptr || first_word(place->value).empty()) return;
  std::string command = place->value;
  bool is_shared = false;
  bool is_captured = false;
  const std::string no_child = "No child can be started: the worker ends with the first shard.";
  while (file.where.look(first_word(command)) == executable_state::ok) {
    const std::string started = started_by(command);
    if (started == command) break;
    if (started.empty()) {
      return file.add(place, error, "{key} names " + first_word(command) + " and no program",
                      no_child, "Write the program and its arguments after it.");
    }
    (first_word(command).ends_with("kclxx-share") ? is_shared : is_captured) = true;
    command = started;
  }
  if (is_shared && is_captured) {
    return file.add(place, error, "{key} has kclxx-share and kclxx capture",
                    "capture is the parent of what it starts, and no program that can be shared: "
                    "each shard gets a process of its own.",
                    "Leave out one of the two.");
  }
  const std::string program = first_word(command);
  const std::string names = "{key} names \"" + program + "\", which ";
  const executable_state state = file.where.look(program);
  if (state == executable_state::ok) {
    std::string arguments = rest_of(command);
    while (!arguments.empty() &&
           !matches(first_word(arguments), "([0-9]*[<>].*)|[|&;]+|.*[;&]|.*[\"'].*")) {
      arguments = rest_of(arguments);
    }
    if (arguments.empty()) return;
    file.add(place, warning, "{key} has " + first_word(arguments),
             "There is no shell: the program gets it as an argument.",
             "Let a script that executableName names do it.");
  } else if (const std::string meant = path_with_blanks(command, file.where.look); !meant.empty()) {
    file.add(place, error, "{key} names \"" + meant + "\", which has a blank",
             "The daemon splits it at blanks, without quoting, and starts \"" + program + "\".",
             "Use a path without blanks; a symbolic link will do.");
  } else if (program.find_first_of(of_shell_in_name) != std::string::npos) {
    file.add(place, error, "{key} has quotes, ~ or $ in \"" + program + "\"",
             "There is no shell: they are read as part of the name. " + no_child,
             "Write the path itself, without blanks.");
  } else {
    file.add(place, error,
             names + (state == executable_state::missing     ? "is not there"
                      : state == executable_state::directory ? "is a directory"
                                                             : "cannot be executed"),
             no_child,
             "Write the path of a program that the daemon's user can execute (chmod +x). A bare "
             "name is looked "
             "up in PATH; a relative path starts at the daemon's working directory, and here at "
             "that of this check.");
  }
}

// --- What the daemon's reader says -------------------------------------------------------------

void check_readings(checked_file& file) {
  std::string warnings;
  bool stops = false;
  for (const reading& said : file.where.readings) {
    stops = stops || said.kind == "stops";
    if (said.kind != "warns" || said.text.starts_with("Some polling properties have been set")) {
      continue;
    }
    warnings += (warnings.empty() ? "" : "; ") + said.text;
  }
  std::map<std::string, bool> unset;
  for (const reading& said : file.where.readings) {
    if (said.kind == "unset") unset[said.key] = true;
  }
  for (const reading& said : file.where.readings) {
    const property* const place = file.at(canonical_key(said.key, file.kcl()));
    const property_row* const row = find_row(said.key, file.kcl());
    const std::string by_default =
        row == nullptr || row->default_value.empty() ? "" : std::string(row->default_value);
    const std::string stays = by_default.empty()
                                  ? "It counts as not set."
                                  : "It counts as not set: the default, " + by_default + ", stays.";
    if (said.kind == "negative" && place != nullptr) {
      const std::string what = place->key + " is " + place->value;
      const bool is_told = std::any_of(
          file.found.begin(), file.found.end(),
          [&](const diagnostic& told) { return told.line == place->line && told.what == what; });
      if (is_told) continue;
      file.add(
          place, warning, what,
          "The daemon takes a negative time or number, and then fails, does not wait, or takes "
          "leases that others hold.",
          "Remove it, or write a positive number.");
    } else if (said.kind == "stops" && !file.lacks_required) {
      file.add(nullptr, error, "the daemon does not start with this file: " + said.text,
               warnings.empty() ? "So says its own reader." : "It warns: " + warnings + ".",
               "docs/host/operating.md#the-daemon-does-not-start has the causes.");
    } else if (said.kind == "reads" && place != nullptr) {
      file.add(place, warning, "{key} is \"{value}\", which the daemon reads as " + said.text,
               unset.contains(said.key) ? stays : "It says nothing of it.",
               "Write the value alone, with nothing after it.");
      unset.erase(said.key);
    } else if (said.kind == "unset" && place != nullptr && unset.contains(said.key) &&
               !by_default.empty() && by_default != "0" && by_default != "false") {
      file.add(place, warning, "{key} is {value}", stays,
               "Remove it; this daemon cannot have that value.");
    }
  }
  if (!stops && !warnings.empty()) {
    file.add(nullptr, warning, "the daemon warns: " + warnings, "It starts without that.",
             "docs/host/operating.md#the-daemon-does-not-start explains such lines.");
  }
}

/// docs/host/deployment.md#size.
struct heap_need {
  std::uint64_t shards;
  std::uint64_t mib_of_a_shard;

  explicit heap_need(const checked_file& file) {
    constexpr std::uint64_t max_records = 10'000;
    constexpr std::uint64_t few = 4;
    const auto number = [&](std::string_view key, std::uint64_t otherwise) {
      const std::string text = file.value(key);
      const std::uint64_t value = matches(text, "[0-9]{1,9}") ? std::stoull(text) : 0;
      return value == 0 ? otherwise : value;
    };
    const std::uint64_t records = std::min(number("maxRecords", max_records), max_records);
    mib_of_a_shard = std::max<std::uint64_t>(1, mib_at_most_records(file) * records / max_records);
    shards = std::min(number("maxLeasesForWorker", few), few);
  }
  static std::uint64_t mib_at_most_records(const checked_file& file) {
    return file.where.has_stock_writer ? 80 : 20;
  }
};

void check_heap(checked_file& file) {
  constexpr std::uint64_t base = 100;
  if (file.where.heap_mib == 0) return;
  const heap_need need(file);
  const std::uint64_t others = base + file.where.heap_of_others;
  const std::uint64_t needed = others + need.shards * need.mib_of_a_shard;
  const std::uint64_t heap = file.where.heap_mib;
  if (heap >= needed) return;
  const std::uint64_t room = heap < others ? 0 : (heap - others) / need.mib_of_a_shard;
  const std::string of_other_streams =
      file.where.heap_of_others == 0
          ? ""
          : " beside " + std::to_string(file.where.heap_of_others) + " MB for other streams,";
  file.add(nullptr, warning,
           "a heap of " + std::to_string(heap) + " MB has room for " + std::to_string(room) +
               " shards in a backlog",
           "With more that read at once Java ends with OutOfMemoryError, and does so again after "
           "each start.",
           "--heap " + std::to_string(needed) + "m for " + std::to_string(need.shards) +
               " shards: 100 MB," + of_other_streams + " and " +
               std::to_string(heap_need::mib_at_most_records(file)) +
               " MB for each at maxRecords = 10000, less in proportion at fewer. Or lower "
               "maxRecords.");
}

void check_version(checked_file& file) {
  if (!is_step_before(file, "2.6.1")) return;
  file.found.push_back(
      {warning, 0, "KCL " + std::string(file.where.kcl.core_version()),
       "it can stop processing shards when the stream's capacity changes",
       "AWS recommends 2.6.1 or later, to avoid a rare condition of 2.6.0 and earlier.",
       "Use --kcl 3, or --kcl 2, which is " + std::string(tested_parts(kcl_version::kcl2).core) +
           "."});
}

}  // namespace

executable_state look_at_name(const std::string& program) {
  const bool is_plain = program.find_first_of(of_shell_in_name) == std::string::npos;
  return is_plain ? executable_state::ok : executable_state::missing;
}

std::vector<reading> parse_readings(std::string_view lines) {
  std::vector<reading> readings;
  std::istringstream input{std::string(lines)};
  for (std::string line; std::getline(input, line);) {
    const auto first = line.find('\t');
    const auto second = line.find('\t', first + 1);
    if (second == std::string::npos) continue;  // what Java itself prints
    readings.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1),
                        line.substr(second + 1)});
  }
  return readings;
}

std::uint64_t heap_of_shards(const properties& file, const circumstances& where) {
  const heap_need need(checked_file(file, where));
  return need.shards * need.mib_of_a_shard;
}

std::vector<diagnostic> find_conflicts(const std::vector<named_properties>& streams,
                                       kcl_version kcl) {
  std::vector<diagnostic> found;
  const properties& last = streams.back().content;
  const auto table_of = [&](const properties& file) {
    const bool is_named = !value_of(file, "tableName", kcl).empty();
    return find(file, is_named ? "tableName" : "applicationName", kcl);
  };
  const auto add = [&](const property& key, const std::string& file, std::string why) {
    found.push_back({severity::error, key.line, key.origin,
                     key.key + " is " + key.value + ", as in " + file, std::move(why),
                     "Give each stream an " + std::string("applicationName of its own.")});
  };
  for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
    const properties& earlier = streams[i].content;
    const property* const name = find(last, "applicationName", kcl);
    const property* const table = table_of(last);
    const property* const earlier_table = table_of(earlier);
    if (name != nullptr && !name->value.empty() &&
        trim_copy(name->value) == value_of(earlier, "applicationName", kcl)) {
      add(*name, streams[i].file,
          "A lease has a shard's number and not its stream: two streams under one name take each "
          "other's leases, and lose records without an error. Metrics and parked records have the "
          "application's name, too.");
    } else if (table != nullptr && earlier_table != nullptr && !table->value.empty() &&
               trim_copy(table->value) == trim_copy(earlier_table->value)) {
      add(*table, streams[i].file,
          "It is the lease table of both. A lease has a shard's number and not its stream: two "
          "streams in one table take each other's leases, and lose records without an error.");
    }
  }
  return found;
}

std::vector<diagnostic> check(const properties& entries, const circumstances& where) {
  checked_file file(entries, where);
  check_keys(file);
  check_values(file);
  check_executable(file);
  check_missing(file);
  check_readings(file);
  check_heap(file);
  check_version(file);
  // Diagnostics without a line come last; otherwise they stay in the order in which they were
  // found.
  std::stable_sort(file.found.begin(), file.found.end(), [](const auto& first, const auto& second) {
    return first.line - 1 < second.line - 1;
  });
  return std::move(file.found);
}

}  // namespace kclxx::host
