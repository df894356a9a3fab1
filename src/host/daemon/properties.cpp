// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/properties.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <utility>

#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/locale/utf.hpp>

namespace kclxx::host {

using namespace tool;

namespace {

// Java's strings and UTF-8. A byte that belongs to no sequence of UTF-8 becomes the character with
// its number (ISO-8859-1).
using utf8 = boost::locale::utf::utf_traits<char>;
using utf16 = boost::locale::utf::utf_traits<char16_t>;

/// How many bytes the sequence at the text's begin has, which may be of half a surrogate pair; 0:
/// no sequence begins there.
std::size_t sequence_size(std::string_view text) {
  const int trail_size = utf8::trail_length(text.front());
  if (trail_size < 0) return 0;
  const std::string_view trail = text.substr(1, static_cast<std::size_t>(trail_size));
  const bool is_whole = trail.size() == static_cast<std::size_t>(trail_size) &&
                        std::all_of(trail.begin(), trail.end(), utf8::is_trail);
  return is_whole ? trail.size() + 1 : 0;
}

std::string to_utf8(std::u16string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    const bool is_pair = utf16::is_first_surrogate(text[i]) && i + 1 < text.size() &&
                         utf16::is_second_surrogate(text[i + 1]);
    if (is_pair) c = utf16::combine_surrogate(text[i], text[i + 1]);
    i += is_pair ? 1 : 0;
    utf8::encode(c, std::back_inserter(result));
  }
  return result;
}

std::u16string to_utf16(std::string_view text) {
  std::u16string result;
  while (!text.empty()) {
    const std::size_t size = sequence_size(text);
    const char* begin = text.data();
    const char32_t c = size == 0 ? static_cast<unsigned char>(*begin) : utf8::decode_valid(begin);
    utf16::encode(c, std::back_inserter(result));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

/// Takes the text apart into logical lines: it joins continued lines, and leaves out comments and
/// blank lines. It follows java.util.Properties in all its oddities: after a lone backslash a
/// comment can still begin, and the backslash of a last line without its newline is dropped.
class logical_lines {
 public:
  explicit logical_lines(std::string_view text) : text_(text) {}

  /// Reads the next logical line into `line`. False: the text has ended.
  bool next() {
    line.clear();
    bool skips_space = true;
    bool is_continued = false;  // the previous line ended in a backslash
    bool is_escaped = false;    // the previous character is a backslash that escapes
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (skips_space) {
        if (is_space(c) || (!is_continued && is_line_end(c))) {
          take();
          continue;
        }
        skips_space = is_continued = false;
      }
      if (line.empty()) {
        number = at_line_;
        if (c == '#' || c == '!') {
          skip_comment();
          skips_space = true;
          continue;
        }
      }
      take();
      if (!is_line_end(c)) {
        line.push_back(c);
        is_escaped = c == '\\' && !is_escaped;
      } else if (line.empty()) {
        skips_space = true;
      } else if (is_escaped) {
        line.pop_back();
        // The end of the text right after this one byte ends the line, even an empty one.
        if (at_ == text_.size() && !was_pair_) return true;
        skips_space = is_continued = true;
        is_escaped = false;
      } else {
        return true;
      }
    }
    if (line.empty()) return false;
    if (is_escaped) line.pop_back();
    return true;
  }

  std::string line;
  std::size_t number = 0;  ///< the number of its first line in the text

 private:
  /// Passes a character, or the two of \r\n, which end a line together.
  void take() {
    const char c = text_[at_++];
    if (!is_line_end(c)) return;
    was_pair_ = c == '\r' && at_ < text_.size() && text_[at_] == '\n';
    if (was_pair_) ++at_;
    ++at_line_;
  }

  void skip_comment() {
    while (at_ < text_.size() && !is_line_end(text_[at_])) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t at_line_ = 1;
  bool was_pair_ = false;  // the last end of a line was \r\n
};

char16_t unicode_escape(std::string_view digits, std::size_t line) {
  std::uint16_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  if (end - digits.data() != 4) throw properties_error(line, "\\u needs four hexadecimal digits");
  return value;
}

std::string unescape(std::string_view raw, std::size_t line) {
  std::u16string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '\\' && i + 1 < raw.size()) {
      c = raw[++i];
      if (c == 'u') {
        text.push_back(unicode_escape(raw.substr(i + 1, 4), line));
        i += 4;
        continue;
      }
      if (c == 't') c = '\t';
      if (c == 'n') c = '\n';
      if (c == 'r') c = '\r';
      if (c == 'f') c = '\f';
    }
    text.push_back(static_cast<unsigned char>(c));
  }
  return to_utf8(text);
}

property parse_line(std::string_view line, std::size_t number) {
  std::size_t key_end = 0;
  for (bool is_escaped = false; key_end < line.size(); ++key_end) {
    const char c = line[key_end];
    if (!is_escaped && (c == '=' || c == ':' || is_space(c))) break;
    is_escaped = c == '\\' && !is_escaped;
  }
  std::size_t value = key_end;
  while (value < line.size() && is_space(line[value])) ++value;
  if (value < line.size() && (line[value] == '=' || line[value] == ':')) ++value;
  while (value < line.size() && is_space(line[value])) ++value;
  return {unescape(line.substr(0, key_end), number), unescape(line.substr(value), number), number,
          ""};
}

std::string escape(std::string_view text) {
  std::string result;
  for (const char16_t c : to_utf16(text)) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-' || c == '/';
    if (is_plain) {
      result.push_back(static_cast<char>(c));
    } else if (c > ' ' && c < 0x7F) {
      result.append({'\\', static_cast<char>(c)});
    } else if (c == ' ') {
      result += "\\ ";
    } else {
      char code[7];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      result += code;
    }
  }
  return result;
}

}  // namespace

properties parse_properties(std::string_view text) {
  properties entries;
  logical_lines lines(text);
  while (lines.next()) entries.push_back(parse_line(lines.line, lines.number));
  return entries;
}

std::string write_properties(const properties& entries) {
  std::string text;
  for (const property& entry : entries)
    text += escape(entry.key) + "=" + escape(entry.value) + "\n";
  return text;
}

namespace {

constexpr std::array<std::string_view, 3> clients{"kinesisClient.", "dynamoDbClient.",
                                                  "cloudWatchClient."};
constexpr std::string_view credentials = "AwsCredentialsProvider";

}  // namespace

std::span<const property_row> property_table() {
  using enum property_row::version;
  // From the classes of the daemons 2.5.4 and 3.1.3, with which the tests e2e.property_table_*
  // compare this list. newer: only daemons of 3.5.0 and later have the key.
  static constexpr property_row rows[] = {
      // The daemon itself
      {"executableName", both, ""},
      {"processingLanguage", both, ""},
      {"maxActiveThreads", both, "0"},
      {"timeoutInSeconds", both, ""},
      {"shutdownGraceMillis", both, "0"},

      // Application, stream, region, endpoints, credentials
      {"applicationName", both, ""},
      {"tableName", both, ""},
      {"streamName", both, ""},
      {"streamArn", both, ""},
      {"workerId", both, ""},
      {"workerIdentifier", both, ""},
      {"regionName", both, ""},
      {"kinesisEndpoint", both, ""},
      {"dynamoDBEndpoint", both, ""},
      {"AWSCredentialsProvider", kcl2, ""},
      {"AWSCredentialsProviderDynamoDB", kcl2, ""},
      {"AWSCredentialsProviderCloudWatch", kcl2, ""},
      {"AwsCredentialsProvider", kcl3, ""},
      {"AwsCredentialsProviderDynamoDB", kcl3, ""},
      {"AwsCredentialsProviderCloudWatch", kcl3, ""},

      // Position and retrieval
      {"initialPositionInStream", both, "LATEST"},
      {"initialPositionInStreamExtended", both, ""},
      {"retrievalMode", both, "DEFAULT"},
      {"maxRecords", both, "10000"},
      {"idleTimeBetweenReadsInMillis", both, ""},
      {"retryGetRecordsInSeconds", both, ""},
      {"maxGetRecordsThreadPool", both, ""},
      {"millisBehindLatestThresholdForReducedTps", kcl3, "0"},
      {"fanoutConfig.consumerArn", both, ""},
      {"fanoutConfig.consumerName", both, ""},
      {"fanoutConfig.maxDescribeStreamSummaryRetries", both, "10"},
      {"fanoutConfig.maxDescribeStreamConsumerRetries", both, "10"},
      {"fanoutConfig.registerStreamConsumerRetries", both, "10"},
      {"fanoutConfig.retryBackoffMillis", both, "1000"},
      {"listShardsBackoffTimeInMillis", both, "1500"},
      {"maxListShardsRetryAttempts", both, "50"},
      {"callProcessRecordsEvenForEmptyRecordList", both, "false"},
      {"validateSequenceNumberBeforeCheckpointing", both, "true"},

      // Leases
      {"failoverTimeMillis", both, "10000"},
      {"leaseAssignmentIntervalMillis", kcl3, ""},
      {"maxLeasesForWorker", both, "2147483647"},
      {"maxLeasesToStealAtOneTime", both, "1"},
      {"enablePriorityLeaseAssignment", kcl3, "true"},
      {"maxLeaseRenewalThreads", both, "20"},
      {"shardSyncIntervalMillis", both, "60000"},
      {"cleanupLeasesUponShardCompletion", both, "true"},
      {"ignoreUnexpectedChildShards", both, "false"},
      {"initialLeaseTableReadCapacity", both, "10"},
      {"initialLeaseTableWriteCapacity", both, "10"},
      {"leaseTableScanTotalSegments", newer, "0"},
      {"leaseTableDeletionProtectionEnabled", kcl3, "false"},
      {"leaseTablePitrEnabled", kcl3, "false"},
      {"gracefulLeaseHandoffTimeoutMillis", kcl3, "30000"},
      {"isGracefulLeaseHandoffEnabled", kcl3, "true"},

      // Balancing of leases
      {"inMemoryWorkerMetricsCaptureFrequencyMillis", kcl3, "1000"},
      {"workerMetricsReporterFreqInMillis", kcl3, "30000"},
      {"noOfPersistedMetricsPerWorkerMetrics", kcl3, "10"},
      {"disableWorkerMetrics", kcl3, "false"},
      {"maxThroughputPerHostKBps", kcl3, ""},
      {"dampeningPercentage", kcl3, "60"},
      {"reBalanceThresholdPercentage", kcl3, "10"},
      {"allowThroughputOvershoot", kcl3, "true"},
      {"varianceBalancingFrequency", kcl3, "3"},
      {"workerMetricsEMAAlpha", kcl3, "0.5"},
      {"staleWorkerMetricsEntryCleanupDuration", kcl3, "P1D"},

      // Coordinator, life cycle, migration
      {"clientVersionConfig", kcl3, "CLIENT_VERSION_CONFIG_3X"},
      {"migrateAllEntitiesToLeaseTable", newer, "false"},
      {"tableMigrationCompleteBakeTimeSeconds", newer, "86400"},
      {"parentShardPollIntervalMillis", both, "10000"},
      {"skipShardSyncAtWorkerInitializationIfLeasesExist", both, "false"},
      {"schedulerInitializationBackoffTimeMillis", both, "1000"},
      {"shardPrioritization", both, ""},
      {"taskBackoffTimeMillis", both, "500"},
      {"logWarningForTaskAfterMillis", both, ""},

      // Metrics
      {"metricsLevel", both, "DETAILED"},
      {"metricsBufferTimeMillis", both, "10000"},
      {"metricsMaxQueueSize", both, "10000"},
      {"metricsEnabledDimensions", both, ""},

      // Side tables
      {"workerMetricsTableName", kcl3, ""},
      {"workerMetricsBillingMode", kcl3, "PAY_PER_REQUEST"},
      {"workerMetricsReadCapacity", kcl3, "0"},
      {"workerMetricsWriteCapacity", kcl3, "0"},
      {"workerMetricsPointInTimeRecoveryEnabled", kcl3, "false"},
      {"workerMetricsDeletionProtectionEnabled", kcl3, "false"},
      {"workerMetricsTags", kcl3, ""},
      {"coordinatorStateTableName", kcl3, ""},
      {"coordinatorStateBillingMode", kcl3, "PAY_PER_REQUEST"},
      {"coordinatorStateReadCapacity", kcl3, "0"},
      {"coordinatorStateWriteCapacity", kcl3, "0"},
      {"coordinatorStatePointInTimeRecoveryEnabled", kcl3, "false"},
      {"coordinatorStateDeletionProtectionEnabled", kcl3, "false"},
      {"coordinatorStateTags", kcl3, ""},
  };
  return rows;
}

std::string canonical_key(std::string_view key, kcl_version kcl) {
  std::string canonical(key);
  if (kcl == kcl_version::kcl3 && boost::istarts_with(key, credentials)) {
    canonical.replace(0, credentials.size(), credentials);
  }
  return canonical;
}

const property_row* find_row(std::string_view key, kcl_version kcl) {
  const std::string canonical = canonical_key(key, kcl);
  for (const property_row& row : property_table()) {
    if (row.key == canonical && row.is_in(kcl)) return &row;
  }
  return nullptr;
}

bool is_of_newer_daemons(std::string_view key) {
  const std::span<const property_row> rows = property_table();
  return std::any_of(rows.begin(), rows.end(), [&](const property_row& row) {
    return row.key == key && row.which == property_row::version::newer;
  });
}

bool is_known(std::string_view key, kcl_version kcl) {
  return find_row(key, kcl) != nullptr ||
         std::any_of(clients.begin(), clients.end(), [key](std::string_view client) {
           return key.starts_with(client) && key.size() > client.size();
         });
}

const property* find(const properties& entries, std::string_view key, kcl_version kcl) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), [&](const property& entry) {
    return canonical_key(entry.key, kcl) == key;
  });
  return found == entries.rend() ? nullptr : &*found;
}

std::string value_of(const properties& entries, std::string_view key, kcl_version kcl) {
  const property* const entry = find(entries, key, kcl);
  return entry == nullptr ? "" : boost::trim_copy(entry->value);
}

properties overrides_in(const std::vector<std::string>& environment) {
  constexpr std::string_view prefix = "KCLXX_PROPERTY_";
  properties found;
  for (const std::string_view variable : environment) {
    const auto equals = variable.find('=');
    if (!variable.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    if (name.size() == prefix.size()) {
      throw properties_error(0, std::string(prefix) + " in the environment names no key");
    }
    std::string key(name.substr(prefix.size()));
    boost::replace_all(key, "__", ".");
    found.push_back(
        {std::move(key), std::string(variable.substr(equals + 1)), 0, std::string(name)});
  }
  std::sort(found.begin(), found.end(),
            [](const property& first, const property& second) { return first.key < second.key; });
  return found;
}

properties with_overrides(properties entries, const properties& overrides, kcl_version kcl) {
  properties kept;
  for (const property& override_of_key : overrides) {
    const std::string key = canonical_key(override_of_key.key, kcl);
    const auto replaced = std::erase_if(
        entries, [&](const property& old) { return canonical_key(old.key, kcl) == key; });
    const bool is_mistaken = replaced == 0 && !is_known(override_of_key.key, kcl);
    if (!override_of_key.value.empty() || is_mistaken) kept.push_back(override_of_key);
  }
  entries.insert(entries.end(), kept.begin(), kept.end());
  return entries;
}

}  // namespace kclxx::host
