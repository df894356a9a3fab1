// SPDX-License-Identifier: Apache-2.0
// Counts page views per page and minute in PostgreSQL, each one exactly once.
// The database is that of PGHOST, PGDATABASE, PGUSER and so on, as for psql. Events that cannot be
// counted are parked there, too.
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <kclxx/kclxx.hpp>

namespace {

using json = nlohmann::json;

/// The server ends the transaction of a worker that is suspended in it: its successor waits for the
/// locks.
constexpr const char* connection_options =
    "fallback_application_name=clickstream connect_timeout=5 "
    "options='-c idle_in_transaction_session_timeout=5s'";

/// A page and a minute, counted from 1970.
using page_minute = std::pair<std::string, std::uint64_t>;

/// Errors: kclxx::permanent_error when the event is not as README.md describes it.
page_minute parse(std::string_view event) {
  try {
    const json view = json::parse(event);
    if (!view.at("at").is_number_unsigned()) throw kclxx::permanent_error("at: no milliseconds");
    return {view.at("page").get<std::string>(), view["at"].get<std::uint64_t>() / 60'000};
  } catch (const json::exception& error) {
    throw kclxx::permanent_error(error.what());
  }
}

/// Counts the page views of one shard.
class view_counter {
 public:
  explicit view_counter(const kclxx::shard_context& shard) : shard_(shard.shard_id()) {}

  /// Errors: kclxx::batch_failure; kclxx::permanent_error when an event, it is not known which one,
  /// can never be stored.
  void operator()(const kclxx::record_batch& batch) {
    try {
      count(batch);
    } catch (const pqxx::data_exception& error) {  // for instance a page that is too long
      throw kclxx::permanent_error(error.what());
    } catch (const pqxx::failure&) {  // whatever the events are: nothing of the batch is counted
      connection_.reset();
      throw kclxx::batch_failure(batch.front().position(), std::current_exception());
    }
  }

 private:
  /// Counts what is not counted yet, up to an event that is not a page view, in one transaction
  /// with the position.
  void count(const kclxx::record_batch& batch) {
    if (!connection_) connection_ = std::make_unique<pqxx::connection>(connection_options);
    pqxx::work transaction(*connection_);
    const auto counted = locked_position(transaction);
    auto last = counted;
    std::map<page_minute, std::int64_t> views;
    std::optional<kclxx::batch_failure> failure;
    for (const kclxx::record& event : batch.after(counted)) {
      try {
        ++views[parse(event.data())];
      } catch (const kclxx::permanent_error&) {
        failure.emplace(event.position(), std::current_exception());
        break;
      }
      last = event.position();
    }
    add(transaction, views);
    transaction.exec_params0("UPDATE shards SET position = $2 WHERE shard = $1", shard_,
                             to_string(last));
    transaction.commit();
    if (failure) throw kclxx::batch_failure(*failure);
  }

  /// Locks the shard's row, and returns the position of the last event that is counted: another
  /// worker may have counted since, or a commit whose answer was lost.
  kclxx::sequence_position locked_position(pqxx::work& transaction) {
    const auto position = transaction.exec_params1(
        "INSERT INTO shards VALUES ($1, 'TRIM_HORIZON/0') ON CONFLICT (shard) "
        "DO UPDATE SET position = shards.position RETURNING position",
        shard_)[0];
    return kclxx::sequence_position::from_string(position.as<std::string>()).value();
  }

  /// In the map's order, as all shards do, so that no two of them wait for each other's rows.
  static void add(pqxx::work& transaction, const std::map<page_minute, std::int64_t>& views) {
    json rows = json::array();
    for (const auto& [where, count] : views) {
      rows.push_back({{"page", where.first}, {"minute", where.second}, {"views", count}});
    }
    transaction.exec_params0(
        "INSERT INTO page_views SELECT page, to_timestamp(minute * 60), views "
        "FROM json_to_recordset($1) AS added (page text, minute bigint, views bigint) "
        "ON CONFLICT (page, minute) DO UPDATE SET views = page_views.views + excluded.views",
        rows.dump());
  }

  std::string shard_;
  std::unique_ptr<pqxx::connection> connection_;
};

/// Events that cannot be counted. One that is parked twice is there once.
class parked_events final : public kclxx::parking_lot {
 public:
  void park(const kclxx::shard_context& shard, const kclxx::failed_record& failed) override {
    const std::string_view data = failed.record.data();
    pqxx::connection connection(connection_options);
    pqxx::work transaction(connection);
    transaction.exec_params0("INSERT INTO parked VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                             shard.shard_id(), to_string(failed.record.position()),
                             failed.last_error, pqxx::binarystring(data.data(), data.size()));
    transaction.commit();
  }
};

}  // namespace

int main() {
  const auto make_counter = [](const kclxx::shard_context& shard) { return view_counter(shard); };
  // While the database is away the shard waits; an event that can never be counted is parked.
  return kclxx::run(kclxx::batches(make_counter, {.bad_record = kclxx::bad_record::park,
                                                  .lot = std::make_shared<parked_events>()}));
}
