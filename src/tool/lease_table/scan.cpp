// SPDX-License-Identifier: Apache-2.0
#include "tool/lease_table/scan.hpp"

#include <algorithm>
#include <charconv>

#include <boost/multiprecision/cpp_int.hpp>

#include "tool/foreign_json.hpp"

namespace kclxx::tool::lease_table {

namespace {

using nlohmann::json;

/// One row, with its place in the scan for messages.
class row {
 public:
  row(const json& item, std::size_t number) : item_(item), number_(number) {
    if (!item.is_object()) throw wrong("it is not an object");
  }

  [[nodiscard]] bool has(const char* name) const { return item_.contains(name); }
  /// Empty: it has no such attribute.
  [[nodiscard]] std::string text(const char* name, const char* type = "S") const {
    const json* const value = find(name, type);
    if (value == nullptr) return {};
    if (!value->is_string()) throw wrong(std::string(name) + " is no text");
    return value->get<std::string>();
  }
  [[nodiscard]] std::uint64_t number(const char* name) const {
    const std::string digits = text(name, "N");
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [parsed, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || parsed != end) {
      throw wrong(std::string(name) + " is not a whole number");
    }
    return value;
  }
  /// Digits of any length, without leading zeros.
  [[nodiscard]] std::string digits(const char* name) const {
    std::string value = text(name);
    if (value.find_first_not_of("0123456789") != std::string::npos) {
      throw wrong(std::string(name) + " is not a whole number");
    }
    return value.empty() ? value
                         : value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
  }
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    const json* const value = find(name, "SS");
    std::vector<std::string> all;
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
      if (!value->is_array() || !value->at(i).is_string()) {
        throw wrong(std::string(name) + " is no set of texts");
      }
      all.push_back(value->at(i).get<std::string>());
    }
    return all;
  }
  [[nodiscard]] bad_scan wrong(const std::string& message) const {
    return bad_scan("Items[" + std::to_string(number_) + "]: " + message);
  }

 private:
  [[nodiscard]] const json* find(const char* name, const char* type) const {
    const auto attribute = item_.find(name);
    if (attribute == item_.end()) return nullptr;
    if (!attribute->is_object() || !attribute->contains(type)) {
      throw wrong(std::string(name) + " has no value of the type " + type);
    }
    return &attribute->at(type);
  }

  const json& item_;
  std::size_t number_;
};

json parse_document(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw bad_scan("it is empty");
  try {
    json document = parse_foreign(text);
    if (!document.is_object() || !document.contains("Items") || !document["Items"].is_array()) {
      throw bad_scan("it has no list Items, so it is not what aws dynamodb scan prints");
    }
    for (const char* token : {"NextToken", "LastEvaluatedKey"}) {
      const auto found = document.find(token);
      if (found == document.end() || found->is_null()) continue;
      throw bad_scan(std::string("it is not the whole table: it has a ") + token +
                     "; scan without --max-items and --no-paginate");
    }
    return document;
  } catch (const foreign_json_error& error) {
    throw bad_scan(std::string("it ") + error.what());
  }
}

lease lease_of(const row& source, std::string shard) {
  return {std::move(shard),
          source.text("leaseOwner"),
          source.text("checkpointOwner"),
          source.number("leaseCounter"),
          source.text("checkpoint"),
          source.has("checkpointSubSequenceNumber")
              ? std::to_string(source.number("checkpointSubSequenceNumber"))
              : "0",
          source.texts("parentShardId"),
          source.text("streamName"),
          source.digits("startingHashKey"),
          source.digits("endingHashKey")};
}

/// Rows that are no leases: KCL 3.5 has them in the lease table, 3.0 to 3.4 in another one.
void add_coordination(scan& result, const row& source, const std::string& key) {
  if (key == "Leader")
    result.leader = {source.text("ownerName"), source.text("recordVersionNumber")};
  if (key == "Migration3.0") result.client_version = source.text("cv");
}

std::map<std::string, backlog> backlogs_of(const json& document) {
  std::map<std::string, backlog> all;
  const auto found = document.find("kclxxBacklogs");
  if (found == document.end()) return all;
  const auto number = [](const json& item, const char* name) {
    const auto value = find_foreign_number(item, name, 0);
    return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
  };
  for (const auto& [shard, one] : found->items()) {
    all[shard] = {number(one, "records"), number(one, "oldest")};
  }
  return all;
}

}  // namespace

scan parse_scan(std::string_view text) {
  const json document = parse_document(text);
  scan all;
  try {
    all.backlogs = backlogs_of(document);
    if (const auto* const unleased = find_foreign(document, "kclxxUnleased")) {
      all.unleased = unleased->get<std::vector<std::string>>();
    }
    all.stream = find_foreign_text(document, "stream").value_or("");
  } catch (const foreign_json_error& error) {
    throw bad_scan(error.what());
  } catch (const json::type_error&) {
    throw bad_scan("\"kclxxUnleased\" is no list of texts");
  }
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const row one(items[i], i);
    const std::string key = one.text("leaseKey");
    if (key.empty()) {
      const bool is_statistics = one.has("wid");
      if (!is_statistics && !one.has("key"))
        throw one.wrong("no leaseKey, so it is no lease table");
      throw one.wrong(std::string("no leaseKey: this is the table of the application with -") +
                      (is_statistics ? "WorkerMetricStats" : "CoordinatorState") +
                      ", and its leases are in the one without");
    }
    if (one.has("leaseCounter")) {
      all.leases.push_back(lease_of(one, key));
    } else {
      all.other_rows.push_back(key);
      add_coordination(all, one, key);
    }
  }
  std::sort(all.leases.begin(), all.leases.end(),
            [](const lease& one, const lease& other) { return one.shard < other.shard; });
  std::sort(all.other_rows.begin(), all.other_rows.end());
  return all;
}

void scan::add_coordinator_state(std::string_view text) {
  const json document = parse_document(text);
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const row one(items[i], i);
    add_coordination(*this, one, one.text("key"));
  }
}

// Of its 47 hexadecimal digits the last one is the version, 2; the nine before the last nine are
// the time.
std::optional<std::int64_t> arrival_of(std::string_view sequence_number) {
  using boost::multiprecision::cpp_int;
  const bool is_number = sequence_number.size() == 56 && sequence_number.front() != '0' &&
                         sequence_number.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) return std::nullopt;
  const cpp_int number{std::string(sequence_number)};
  const bool is_version_2 = (number & 0xF) == 2 && number >> 184 == 2;
  if (!is_version_2) return std::nullopt;
  return cpp_int((number >> 36) & 0xFFFFFFFFF).convert_to<std::int64_t>();
}

}  // namespace kclxx::tool::lease_table
