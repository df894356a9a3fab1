// SPDX-License-Identifier: Apache-2.0
#include "tool/lease_table/observation.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "tool/text.hpp"

namespace kclxx::tool::lease_table {

namespace {

// A lock is renewed less often than a lease.
constexpr observation::time lock_limit{60'000};

bool has_children(const scan& table, const lease& parent) {
  return std::any_of(table.leases.begin(), table.leases.end(), [&](const lease& one) {
    return std::find(one.parents.begin(), one.parents.end(), parent.shard) != one.parents.end();
  });
}

/// Whether its first record is still to be read: then it waits for its parents.
bool has_not_begun(const lease& one) {
  return one.sequence_number == "TRIM_HORIZON" || one.sequence_number == "LATEST" ||
         one.sequence_number == "AT_TIMESTAMP";
}

const lease* unfinished_parent(const scan& table, const lease& child) {
  const auto found = std::find_if(table.leases.begin(), table.leases.end(), [&](const lease& one) {
    return !one.has_ended() &&
           std::find(child.parents.begin(), child.parents.end(), one.shard) != child.parents.end();
  });
  return found == table.leases.end() || !has_not_begun(child) ? nullptr : &*found;
}

/// Whether a worker assigns the leases. Before that each takes its own, as with KCL 2.
bool needs_leader(const scan& table) {
  return table.client_version.starts_with("CLIENT_VERSION_3X");
}

/// Hash keys, as digits without leading zeros.
bool is_less(const std::string& one, const std::string& other) {
  return one.size() != other.size() ? one.size() < other.size() : one < other;
}

std::string successor_of(std::string hash_key) {
  std::size_t at = hash_key.size();
  while (at > 0 && hash_key[at - 1] == '9') hash_key[--at] = '0';
  if (at == 0) return "1" + hash_key;
  ++hash_key[at - 1];
  return hash_key;
}

std::string predecessor_of(std::string hash_key) {
  std::size_t at = hash_key.size();
  while (hash_key[at - 1] == '0') hash_key[--at] = '9';
  --hash_key[at - 1];
  return hash_key.size() > 1 && hash_key.front() == '0' ? hash_key.substr(1) : hash_key;
}

/// The hash keys that no lease of the stream covers: "A to B". As the KCL does it, by the leases
/// whose shards have not ended; an ended one without children is told of by itself.
std::vector<std::string> holes_in(const scan& table, const std::string& stream) {
  const std::string last = "340282366920938463463374607431768211455";
  std::vector<const lease*> all;
  bool has_ranges = false;  // DynamoDB Streams have none: each of their shards has 0 to 1
  for (const lease& one : table.leases) {
    if (one.stream != stream || (one.has_ended() && has_children(table, one))) continue;
    if (one.first_hash_key.empty() || one.last_hash_key.empty()) return {};
    has_ranges = has_ranges || one.first_hash_key != "0" || one.last_hash_key != "1";
    all.push_back(&one);
  }
  if (!has_ranges) return {};
  std::sort(all.begin(), all.end(), [](const lease* one, const lease* other) {
    return is_less(one->first_hash_key, other->first_hash_key);
  });
  std::vector<std::string> holes;
  std::string next = "0";  // the first that is not covered so far
  for (const lease* one : all) {
    if (is_less(next, one->first_hash_key)) {
      holes.push_back(next + " to " + predecessor_of(one->first_hash_key));
    }
    if (!is_less(one->last_hash_key, next)) next = successor_of(one->last_hash_key);
  }
  if (!is_less(last, next)) holes.push_back(next + " to " + last);
  return holes;
}

}  // namespace

const char* name_of(lease_state state) {
  switch (state) {
    case lease_state::ok:
      return "ok";
    case lease_state::held:
      return "held";
    case lease_state::ended:
      return "ended";
    case lease_state::waits:
      return "waits";
    case lease_state::handing_over:
      return "handing over";
    case lease_state::free:
      return "free";
    case lease_state::stuck:
      return "stuck";
  }
  return "";
}

bool picture::is_stuck() const {
  return std::any_of(notes.begin(), notes.end(), [](const note& one) { return one.is_problem; }) ||
         std::any_of(shards.begin(), shards.end(),
                     [](const shard_state& one) { return one.state == lease_state::stuck; });
}

bool picture::is_handing_over() const {
  return std::any_of(shards.begin(), shards.end(),
                     [](const shard_state& one) { return one.state == lease_state::handing_over; });
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
  for (const lease& one : next.leases) {
    note_value("counter " + one.shard, one.owner + " " + std::to_string(one.counter));
    note_value("owners " + one.shard, one.checkpoint_owner + " " + one.owner);
  }
  std::set<std::string> streams;
  for (const lease& one : next.leases) streams.insert(one.stream);
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

/// A leader that has leases shows sooner by them whether it lives.
std::optional<bool> observation::is_leader_moving() const {
  std::optional<bool> moving = is_moving("leader", lock_limit);
  if (moving || !latest_.leader) return moving;
  for (const lease& one : latest_.leases) {
    if (one.owner != latest_.leader->owner || one.has_ended()) continue;
    const auto lives = is_moving("counter " + one.shard, limit_);
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
             : "if none of KCL 3 runs, start one; KCL 2 cannot take it, see below";
}

std::string observation::why_free() const {
  if (lacks_leader()) return "no worker has it, and there is no leader to give it to one";
  const std::string who = needs_leader(latest_)
                              ? "the leader " + latest_.leader->owner + " has yet to assign it; "
                              : "";
  return "no worker has it: " + who + when_to_start();
}

std::string observation::why_not_renewed(const lease& one) const {
  return one.owner + " has not renewed it for " + to_text(same_for("counter " + one.shard)) +
         ": it has ended, or hangs" +
         (lacks_leader() ? ", and there is no leader to give it to another"
                         : ". Others take it after failoverTimeMillis; " + when_to_start());
}

shard_state observation::look_at(const lease& one) const {
  shard_state found{one,
                    lease_state::ok,
                    {},
                    is_moving("counter " + one.shard, limit_),
                    arrival_of(one.sequence_number),
                    {}};
  const auto backlog = latest_.backlogs.find(one.shard);
  if (backlog != latest_.backlogs.end()) found.waiting = backlog->second;
  const auto is = [&](lease_state state, std::string cause) {
    found.state = state;
    found.cause = std::move(cause);
    return found;
  };
  if (one.has_ended()) {
    found.is_moving.reset();
    if (has_children(latest_, one)) return is(lease_state::ended, {});
    return is(
        lease_state::stuck,
        "it has ended, and none of its children has a lease, and no worker makes one: let it be "
        "read again");
  }
  if (!one.checkpoint_owner.empty()) {
    const time lasts = same_for("owners " + one.shard);
    const std::string both = one.checkpoint_owner + " has to hand it over to " + one.owner;
    if (lasts < hand_over_limit) {
      return is(lease_state::handing_over, both + ", which takes 30 s at most");
    }
    return is(lease_state::stuck,
              both + ", and has not for " + to_text(lasts) + ": restart " + one.checkpoint_owner);
  }
  const lease* const parent = unfinished_parent(latest_, one);
  if (one.owner.empty()) {
    found.is_moving.reset();
    const bool has_waited = same_for("owners " + one.shard) >= limit_;
    if (has_waited) return is(lease_state::stuck, why_free());
    if (parent == nullptr) return is(lease_state::free, why_free());
  } else if (found.is_moving == false) {
    return is(lease_state::stuck, why_not_renewed(one));
  }
  if (parent != nullptr) return is(lease_state::waits, "until " + parent->shard + " has ended");
  return is(found.is_moving ? lease_state::ok : lease_state::held, {});
}

void observation::look_at_leader(picture& all) const {
  if (!needs_leader(latest_)) return;
  const std::string what =
      ": no lease is assigned until another worker is the leader, two minutes "
      "after it has begun to wait for the lock, or one of the same workerId "
      "is started";
  if (!latest_.leader) {
    all.notes.push_back({true,
                         "no worker is the leader: no lease is assigned; if no worker runs, "
                         "start one"});
  } else if (all.is_leader_moving == false) {
    all.notes.push_back({true, "the leader " + latest_.leader->owner + " has ended" + what});
  }
}

// While a worker makes the leases of a new table, some are not there yet.
void observation::look_at_shards_without_lease(picture& all) const {
  const std::string hole = "hole ";
  for (auto at = seen_.lower_bound(hole); at != seen_.end() && at->first.starts_with(hole); ++at) {
    if (scans_ > 1 && at->second.since == last_) continue;
    all.notes.push_back({true, "no lease covers hash keys " + at->first.substr(hole.size()) +
                                   ": no worker reads the shard. The leader makes its lease again "
                                   "within 5 min, and it begins at initialPositionInStream"});
  }
  for (const std::string& shard : latest_.unleased) {
    all.notes.push_back({true, "the shard " + shard + " has no lease: no worker reads it"});
  }
}

picture observation::look() const {
  picture all;
  all.other_rows = latest_.other_rows;
  all.leader = latest_.leader;
  all.client_version = latest_.client_version;
  all.is_leader_moving = is_leader_moving();
  all.scans = scans_;
  all.observed = last_ - first_;
  for (const lease& one : latest_.leases) all.shards.push_back(look_at(one));
  if (all.shards.empty()) {
    all.notes.push_back({true, "the table has no lease: no worker has begun; see its log"});
  }
  look_at_shards_without_lease(all);
  look_at_leader(all);
  if (!all.other_rows.empty()) {
    std::string keys;
    for (const std::string& key : all.other_rows) keys += (keys.empty() ? "" : ", ") + key;
    all.notes.push_back({false,
                         "no worker of KCL 1 or 2 can start or take a lease: rows without "
                         "leaseCounter, which KCL 3 has written: " +
                             keys});
  }
  if (scans_ == 1) {
    all.notes.push_back({false, "whether counters move is not known from one scan"});
  }
  return all;
}

}  // namespace kclxx::tool::lease_table
