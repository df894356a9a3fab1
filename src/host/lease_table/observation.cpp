// SPDX-License-Identifier: Apache-2.0
#include "host/lease_table/observation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <nlohmann/json.hpp>

#include "tool/foreign_json.hpp"
#include "tool/text.hpp"

namespace kclxx::host::lease_table {

using namespace tool;

namespace {

using nlohmann::json;

/// A row of the table, with its place in the scan for messages.
class scan_item {
 public:
  scan_item(const json& item, std::size_t number) : item_(item), number_(number) {
    if (!item.is_object()) throw wrong("it is not an object");
  }

  [[nodiscard]] bool has(const char* name) const { return item_.contains(name); }
  /// The text of an attribute; empty: the row has no such attribute.
  [[nodiscard]] std::string text(const char* name, const char* type = "S") const {
    const json* const value = find(name, type);
    if (value == nullptr) return {};
    if (!value->is_string()) throw wrong(std::string(name) + " is no text");
    return value->get<std::string>();
  }
  [[nodiscard]] std::uint64_t number(const char* name) const {
    std::uint64_t value = 0;
    if (!read_number(text(name, "N"), value)) {
      throw wrong(std::string(name) + " is not a whole number");
    }
    return value;
  }
  /// The digits of a number of any length, without leading zeros; empty: there is no such
  /// attribute.
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
    std::vector<std::string> values;
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
      if (!value->is_array() || !value->at(i).is_string()) {
        throw wrong(std::string(name) + " is no set of texts");
      }
      values.push_back(value->at(i).get<std::string>());
    }
    return values;
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

lease lease_of(const scan_item& source, std::string shard) {
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

/// Takes what a row tells that is no lease: KCL 3.5 has such rows in the lease table, 3.0 to 3.4 in
/// another one.
void add_coordination(scan& result, const scan_item& source, const std::string& key) {
  if (key == "Leader")
    result.leader = {source.text("ownerName"), source.text("recordVersionNumber")};
  if (key == "Migration3.0") result.client_version = source.text("cv");
}

std::map<std::string, backlog> backlogs_of(const json& document) {
  std::map<std::string, backlog> backlogs;
  const auto found = document.find("kclxxBacklogs");
  if (found == document.end()) return backlogs;
  const auto number = [](const json& item, const char* name) {
    const auto value = find_foreign_number(item, name, 0);
    return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
  };
  for (const auto& [shard, figures] : found->items()) {
    backlogs[shard] = {number(figures, "records"), number(figures, "oldest")};
  }
  return backlogs;
}

}  // namespace

scan parse_scan(std::string_view text) {
  const json document = parse_document(text);
  scan result;
  try {
    result.backlogs = backlogs_of(document);
    if (const auto* const unleased = find_foreign(document, "kclxxUnleased")) {
      result.unleased = unleased->get<std::vector<std::string>>();
    }
    result.stream = find_foreign_text(document, "stream").value_or("");
    if (find_foreign(document, "Shards") != nullptr) result.shards = parse_shards(text);
  } catch (const foreign_json_error& error) {
    throw bad_scan(error.what());
  } catch (const bad_stream_answer& error) {
    throw bad_scan(error.what());
  } catch (const json::type_error&) {
    throw bad_scan("\"kclxxUnleased\" is no list of texts");
  }
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const scan_item source(items[i], i);
    const std::string key = source.text("leaseKey");
    if (key.empty()) {
      const bool is_statistics = source.has("wid");
      if (!is_statistics && !source.has("key"))
        throw source.wrong("no leaseKey, so it is no lease table");
      throw source.wrong(std::string("no leaseKey: this is the table of the application with -") +
                         (is_statistics ? "WorkerMetricStats" : "CoordinatorState") +
                         ", and its leases are in the one without");
    }
    if (source.has("leaseCounter")) {
      result.leases.push_back(lease_of(source, key));
    } else {
      result.other_rows.push_back(key);
      add_coordination(result, source, key);
    }
  }
  std::sort(result.leases.begin(), result.leases.end(),
            [](const lease& first, const lease& second) { return first.shard < second.shard; });
  std::sort(result.other_rows.begin(), result.other_rows.end());
  return result;
}

void scan::add_coordinator_state(std::string_view text) {
  const json document = parse_document(text);
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const scan_item source(items[i], i);
    add_coordination(*this, source, source.text("key"));
  }
}

namespace {

// How long the leader's lock may stay the same: it is renewed less often than a lease.
constexpr observation::time lock_limit{60'000};

bool has_children(const scan& table, const lease& parent) {
  return std::any_of(table.leases.begin(), table.leases.end(), [&](const lease& child) {
    return std::find(child.parents.begin(), child.parents.end(), parent.shard) !=
           child.parents.end();
  });
}

/// The last digits of a sequence number: these differ between records.
std::string shortened(const std::string& sequence_number) {
  return sequence_number.size() <= 20 ? sequence_number
                                      : "~" + sequence_number.substr(sequence_number.size() - 14);
}

/// Whether the shard's first record is still to be read: then the shard waits for its parents.
bool has_not_begun(const lease& row) {
  return row.sequence_number == "TRIM_HORIZON" || row.sequence_number == "LATEST" ||
         row.sequence_number == "AT_TIMESTAMP";
}

const lease* unfinished_parent(const scan& table, const lease& child) {
  const auto found =
      std::find_if(table.leases.begin(), table.leases.end(), [&](const lease& parent) {
        return !parent.has_ended() && std::find(child.parents.begin(), child.parents.end(),
                                                parent.shard) != child.parents.end();
      });
  return found == table.leases.end() || !has_not_begun(child) ? nullptr : &*found;
}

/// Whether a worker assigns the leases. Before that each takes its own, as with KCL 2.
bool needs_leader(const scan& table) {
  return table.client_version.starts_with("CLIENT_VERSION_3X");
}

/// The hash keys that no lease of the stream covers: "A to B". As in the KCL, the leases count
/// whose shards have not ended, and here those of ended shards without children, which are told by
/// themselves.
std::vector<std::string> holes_in(const scan& table, const std::string& stream) {
  using boost::multiprecision::cpp_int;
  std::vector<std::pair<cpp_int, cpp_int>> ranges;
  bool has_ranges = false;  // DynamoDB Streams have none: each of their shards has 0 to 1
  for (const lease& row : table.leases) {
    if (row.stream != stream || (row.has_ended() && has_children(table, row))) continue;
    if (row.first_hash_key.empty() || row.last_hash_key.empty()) return {};
    has_ranges = has_ranges || row.first_hash_key != "0" || row.last_hash_key != "1";
    ranges.emplace_back(row.first_hash_key, row.last_hash_key);
  }
  if (!has_ranges) return {};
  std::sort(ranges.begin(), ranges.end());
  const cpp_int end = cpp_int(1) << 128;
  ranges.emplace_back(end, end);
  std::vector<std::string> holes;
  cpp_int next = 0;  // the first that is not covered so far
  for (const auto& [first, last] : ranges) {
    if (next < first) holes.push_back(next.str() + " to " + cpp_int(first - 1).str());
    if (next <= last) next = last + 1;
  }
  return holes;
}

}  // namespace

const char* name_of(lease_state state) {
  constexpr std::array names{"ok", "held", "ended", "waits", "handing over", "free", "stuck"};
  return names.at(static_cast<std::size_t>(state));
}

bool picture::is_stuck() const {
  return std::any_of(notes.begin(), notes.end(),
                     [](const note& remark) { return remark.is_problem; }) ||
         std::any_of(shards.begin(), shards.end(),
                     [](const shard_state& shard) { return shard.state == lease_state::stuck; });
}

bool picture::is_handing_over() const {
  return std::any_of(shards.begin(), shards.end(), [](const shard_state& shard) {
    return shard.state == lease_state::handing_over;
  });
}

std::vector<worker_share> picture::shares() const {
  std::map<std::string, worker_share> by_worker;
  for (const shard_state& shard : shards) {
    if (shard.lease.has_ended()) continue;
    worker_share& share = by_worker[shard.lease.owner];
    share.worker = shard.lease.owner;
    ++share.leases;
    if (shard.arrival)
      share.arrival = std::min(share.arrival.value_or(*shard.arrival), *shard.arrival);
    if (shard.waiting.records) share.records = share.records.value_or(0) + *shard.waiting.records;
  }
  std::vector<worker_share> result;
  for (auto& [worker, share] : by_worker) result.push_back(std::move(share));
  return result;
}

void observation::add(scan next, time instant) {
  std::map<std::string, constancy> before = std::exchange(seen_, {});
  const auto note_value = [&](const std::string& key, std::string value) {
    const auto old = before.find(key);
    if (old == before.end()) {
      seen_[key] = {std::move(value), instant, false};
    } else if (old->second.value == value) {
      seen_[key] = old->second;
    } else {
      seen_[key] = {std::move(value), instant, true};
    }
  };
  for (const lease& row : next.leases) {
    note_value("counter " + row.shard, row.owner + " " + std::to_string(row.counter));
    note_value("owners " + row.shard, row.checkpoint_owner + " " + row.owner);
  }
  std::set<std::string> streams;
  for (const lease& row : next.leases) streams.insert(row.stream);
  for (const std::string& stream : streams) {
    for (const std::string& hole : holes_in(next, stream)) {
      note_value("hole " + (stream.empty() ? hole : hole + " of stream " + stream), "");
    }
  }
  if (next.leader) note_value("leader", next.leader->owner + " " + next.leader->version);
  if (scans_ == 0) first_ = instant;
  last_ = instant;
  ++scans_;
  latest_ = std::move(next);
}

observation::time observation::same_for(const std::string& key) const {
  const auto found = seen_.find(key);
  return found == seen_.end() ? time(0) : last_ - found->second.since;
}

std::optional<bool> observation::is_moving(const std::string& key, time limit) const {
  const auto found = seen_.find(key);
  if (found == seen_.end()) return std::nullopt;
  if (last_ - found->second.since >= limit) return false;
  if (found->second.has_changed) return true;
  return std::nullopt;
}

/// Whether the leader lives. Its own leases tell that sooner than its lock.
std::optional<bool> observation::is_leader_moving() const {
  std::optional<bool> moving = is_moving("leader", lock_limit);
  if (moving || !latest_.leader) return moving;
  for (const lease& row : latest_.leases) {
    if (row.owner != latest_.leader->owner || row.has_ended()) continue;
    const auto lives = is_moving("counter " + row.shard, limit_);
    if (lives && *lives) return true;
    if (lives) moving = false;
  }
  return moving;
}

bool observation::lacks_leader() const {
  return needs_leader(latest_) && (!latest_.leader || is_leader_moving() == false);
}

std::string observation::when_to_start() const {
  return latest_.other_rows.empty() || needs_leader(latest_)
             ? "if none runs, start one"
             : "start a worker of KCL 3 if none runs; KCL 2 cannot take it, see below";
}

std::string observation::why_free() const {
  if (lacks_leader()) return "no worker has it, and there is no leader to give it to one";
  const std::string who = needs_leader(latest_)
                              ? "the leader " + latest_.leader->owner + " has yet to assign it; "
                              : "";
  return "no worker has it: " + who + when_to_start();
}

std::string observation::why_not_renewed(const lease& row) const {
  return row.owner + " has not renewed it for " + to_text(same_for("counter " + row.shard)) +
         ": it has ended, or hangs" +
         (lacks_leader() ? ", and there is no leader to give it to another"
                         : ". Others take it after failoverTimeMillis; " + when_to_start());
}

shard_state observation::look_at(const lease& row) const {
  shard_state found{row,
                    lease_state::ok,
                    {},
                    is_moving("counter " + row.shard, limit_),
                    arrival_of(row.sequence_number),
                    {}};
  const auto backlog = latest_.backlogs.find(row.shard);
  if (backlog != latest_.backlogs.end()) found.waiting = backlog->second;
  const auto is = [&](lease_state state, std::string cause) {
    found.state = state;
    found.cause = std::move(cause);
    return found;
  };
  if (row.has_ended()) {
    found.is_moving.reset();
    if (has_children(latest_, row)) return is(lease_state::ended, {});
    return is(lease_state::stuck,
              "it has ended, and none of its children has a lease, which no worker makes again: "
              "let it be "
              "read again");
  }
  if (!row.checkpoint_owner.empty()) {
    const time lasts = same_for("owners " + row.shard);
    const std::string both = row.checkpoint_owner + " has to hand it over to " + row.owner;
    if (lasts < hand_over_limit) {
      return is(lease_state::handing_over, both + ", which takes 30 s at most");
    }
    return is(lease_state::stuck,
              both + ", and has not for " + to_text(lasts) + ": restart " + row.checkpoint_owner);
  }
  const lease* const parent = unfinished_parent(latest_, row);
  if (row.owner.empty()) {
    found.is_moving.reset();
    const bool has_waited = same_for("owners " + row.shard) >= limit_;
    if (has_waited) return is(lease_state::stuck, why_free());
    if (parent == nullptr) return is(lease_state::free, why_free());
  } else if (found.is_moving == false) {
    return is(lease_state::stuck, why_not_renewed(row));
  }
  if (parent != nullptr) return is(lease_state::waits, "until " + parent->shard + " has ended");
  return is(found.is_moving ? lease_state::ok : lease_state::held, {});
}

void observation::look_at_leader(picture& result) const {
  if (!needs_leader(latest_)) return;
  const std::string what =
      ": no lease is assigned until another worker is the leader, two minutes "
      "after it has begun to wait for the lock, or one of the same workerId "
      "is started";
  if (!latest_.leader) {
    result.notes.push_back({true,
                            "no worker is the leader: no lease is assigned; if no worker runs, "
                            "start one"});
  } else if (result.is_leader_moving == false) {
    result.notes.push_back({true, "the leader " + latest_.leader->owner + " has ended" + what});
  }
}

// A hole counts when two scans have it: while a worker fills a new table, some leases are not there
// yet.
void observation::look_at_shards_without_lease(picture& result) const {
  const std::string hole = "hole ";
  for (auto at = seen_.lower_bound(hole); at != seen_.end() && at->first.starts_with(hole); ++at) {
    if (scans_ > 1 && at->second.since == last_) continue;
    result.notes.push_back(
        {true, "no lease covers hash keys " + at->first.substr(hole.size()) +
                   ": no worker reads the shard. The leader makes its lease again "
                   "within 5 min, and it begins at initialPositionInStream"});
  }
  for (const std::string& shard : latest_.unleased) {
    result.notes.push_back({true, "the shard " + shard + " has no lease: no worker reads it"});
  }
}

// Such rows come from two streams under one applicationName, or from a stream that was made again.
void observation::look_at_foreign_rows(picture& result) const {
  if (latest_.shards.empty()) return;
  constexpr std::size_t max_named = 3;
  std::string names;
  std::size_t count = 0;
  for (const lease& row : latest_.leases) {
    const auto shard =
        std::find_if(latest_.shards.begin(), latest_.shards.end(),
                     [&](const stream_shard& listed) { return listed.id == row.shard; });
    const bool is_there = shard != latest_.shards.end();
    // A shard that has ended no longer has a position; a table of several streams names them.
    if (row.has_ended() || !row.stream.empty() ||
        (is_there && can_be_in(*shard, row.sequence_number)))
      continue;
    if (++count > max_named) continue;
    names += (names.empty() ? "" : ", ") + row.shard +
             (is_there ? " at " + shortened(row.sequence_number) : ", which it does not have");
  }
  if (count == 0) return;
  if (count > max_named) names += " and " + std::to_string(count - max_named) + " more";
  result.notes.push_back(
      {true, "rows that the stream " + latest_.stream + " cannot have: " + names +
                 ": another stream is read under this applicationName, this one was deleted and "
                 "made again, or the shard left it before its end was stored; see "
                 "docs/host/operating.md#why-is-a-shard-silent"});
}

picture observation::look() const {
  picture result;
  result.other_rows = latest_.other_rows;
  result.leader = latest_.leader;
  result.client_version = latest_.client_version;
  result.is_leader_moving = is_leader_moving();
  result.scans = scans_;
  result.observed = last_ - first_;
  for (const lease& row : latest_.leases) result.shards.push_back(look_at(row));
  if (result.shards.empty()) {
    result.notes.push_back({true, "the table has no lease: no worker has begun; see its log"});
  }
  look_at_shards_without_lease(result);
  look_at_foreign_rows(result);
  look_at_leader(result);
  if (scans_ == 1) {
    result.notes.push_back({false, "whether counters move is not known from one scan"});
  }
  return result;
}

namespace {

using nlohmann::ordered_json;
using cells = std::vector<std::string>;

std::string since(std::int64_t arrival, std::int64_t now) {
  const std::int64_t age = std::max<std::int64_t>(0, now - arrival);
  constexpr std::int64_t day = 86'400;
  return age < 3 * day ? to_text(std::chrono::seconds(age)) : std::to_string(age / day) + " days";
}

ordered_json age_or_null(std::optional<std::int64_t> arrival, std::int64_t now) {
  return arrival ? ordered_json(now - *arrival) : ordered_json(nullptr);
}

std::string age_or_dash(std::optional<std::int64_t> arrival, std::int64_t now) {
  return arrival ? since(*arrival, now) : "-";
}

std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string milliseconds_or_dash(std::optional<std::uint64_t> time) {
  return time ? to_text(std::chrono::milliseconds(*time)) : "-";
}

std::string number_or_dash(std::optional<std::uint64_t> number) {
  return number ? std::to_string(*number) : "-";
}

/// JSON's null in place of nothing.
template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}
ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

std::string yes_or_no(std::optional<bool> value) { return !value ? "-" : *value ? "yes" : "no"; }

/// How many characters a text in UTF-8 has.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string aligned(const std::vector<cells>& rows, const std::set<std::string>& numbers) {
  std::string text;
  std::vector<std::size_t> widths(rows.front().size());
  for (const cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width(row[i]), ' ');
      const bool is_number = numbers.contains(rows.front()[i]);
      const bool is_last = i + 1 == row.size();
      text += is_number ? space + row[i] : row[i] + (is_last ? "" : space);
      text += is_last ? "\n" : "  ";
    }
  }
  return text;
}

ordered_json lease_object(const shard_state& shard, std::int64_t now) {
  ordered_json checkpoint{{"sequence_number", shard.lease.sequence_number},
                          {"sub_sequence_number", shard.lease.sub_sequence_number}};
  checkpoint["arrived"] = or_null(shard.arrival);
  checkpoint["age_seconds"] = age_or_null(shard.arrival, now);
  return {{"shard", shard.lease.shard},
          {"owner", or_null(shard.lease.owner)},
          {"checkpoint_owner", or_null(shard.lease.checkpoint_owner)},
          {"counter", shard.lease.counter},
          {"moves", or_null(shard.is_moving)},
          {"checkpoint", checkpoint},
          {"parents", shard.lease.parents},
          {"state", name_of(shard.state)},
          {"cause", or_null(shard.cause)}};
}

/// A line for each worker. Empty: no worker has a lease.
std::string shares_table(const picture& seen, bool has_backlogs, std::int64_t now) {
  cells head{"worker", "leases", "oldest checkpoint"};
  if (has_backlogs) head.emplace_back("lag");
  std::vector<cells> rows{head};
  for (const worker_share& share : seen.shares()) {
    if (share.worker.empty()) continue;
    cells row{printable(share.worker), std::to_string(share.leases),
              age_or_dash(share.arrival, now)};
    if (has_backlogs) row.push_back(number_or_dash(share.records));
    rows.push_back(std::move(row));
  }
  return rows.size() == 1 ? "" : aligned(rows, {"leases", "oldest checkpoint", "lag"});
}

ordered_json share_object(const worker_share& share, std::int64_t now) {
  return {{"worker", or_null(share.worker)},
          {"leases", share.leases},
          {"oldest_checkpoint_age_seconds", age_or_null(share.arrival, now)}};
}

}  // namespace

std::string to_table(const picture& seen, std::int64_t now) {
  const bool has_backlogs = std::any_of(
      seen.shards.begin(), seen.shards.end(),
      [](const shard_state& shard) { return shard.waiting.records || shard.waiting.oldest; });
  cells head{"shard", "owner", "counter", "moves", "checkpoint", "age"};
  if (has_backlogs) head.insert(head.end(), {"lag", "oldest"});
  head.emplace_back("state");
  std::vector<cells> rows{head};
  for (const shard_state& shard : seen.shards) {
    cells row{
        printable(shard.lease.shard),
        printable(text_or_dash(shard.lease.owner)),
        std::to_string(shard.lease.counter),
        yes_or_no(shard.is_moving),
        printable(shortened(shard.lease.sequence_number) + "/" + shard.lease.sub_sequence_number),
        age_or_dash(shard.arrival, now)};
    if (has_backlogs) {
      row.push_back(number_or_dash(shard.waiting.records));
      row.push_back(milliseconds_or_dash(shard.waiting.oldest));
    }
    row.push_back(name_of(shard.state) +
                  (shard.cause.empty() ? "" : ": " + printable(shard.cause)));
    rows.push_back(std::move(row));
  }
  std::string text = seen.shards.empty() ? "" : aligned(rows, {"counter", "age", "lag", "oldest"});
  text += shares_table(seen, has_backlogs, now);
  if (seen.leader) {
    text += "leader: " + printable(seen.leader->owner) + '\n';
  }
  if (!seen.client_version.empty()) text += "version: " + printable(seen.client_version) + '\n';
  for (const note& remark : seen.notes) {
    text += (remark.is_problem ? "stuck: " : "note: ") + printable(remark.text) + '\n';
  }
  return text;
}

std::string to_tsv(const picture& seen, std::int64_t now) {
  std::string text =
      "shard\tsequence_number\tsub_sequence_number\towner\tcounter\tlag\toldest_milliseconds\t"
      "moves\tage_seconds\tstate\tcause\n";
  for (const shard_state& shard : seen.shards) {
    const cells fields{shard.lease.shard,
                       shard.lease.sequence_number,
                       shard.lease.sub_sequence_number,
                       text_or_dash(shard.lease.owner),
                       std::to_string(shard.lease.counter),
                       number_or_dash(shard.waiting.records),
                       number_or_dash(shard.waiting.oldest),
                       yes_or_no(shard.is_moving),
                       shard.arrival ? std::to_string(now - *shard.arrival) : "-",
                       name_of(shard.state),
                       text_or_dash(shard.cause)};
    for (const std::string& field : fields) {
      text += printable(field);
      text += &field == &fields.back() ? '\n' : '\t';
    }
  }
  return text;
}

std::string to_json(const picture& seen, const std::string& table, std::int64_t now,
                    bool in_one_line) {
  ordered_json leases = ordered_json::array();
  for (const shard_state& shard : seen.shards) leases.push_back(lease_object(shard, now));
  ordered_json workers = ordered_json::array();
  for (const worker_share& share : seen.shares()) workers.push_back(share_object(share, now));
  ordered_json notes = ordered_json::array();
  for (const note& remark : seen.notes) {
    notes.push_back({{"problem", remark.is_problem}, {"text", remark.text}});
  }
  ordered_json leader = nullptr;
  if (seen.leader) {
    leader = {{"owner", seen.leader->owner}, {"moves", or_null(seen.is_leader_moving)}};
  }
  const ordered_json document{
      {"table", table},
      {"scans", seen.scans},
      {"observed_seconds", std::chrono::duration<double>(seen.observed).count()},
      {"stuck", seen.is_stuck()},
      {"leader", leader},
      {"client_version", or_null(seen.client_version)},
      {"unreadable_by_kcl_2", seen.other_rows},
      {"leases", leases},
      {"workers", workers},
      {"notes", notes}};
  return document.dump(in_one_line ? -1 : 2, ' ', true, ordered_json::error_handler_t::replace) +
         '\n';
}

}  // namespace kclxx::host::lease_table
