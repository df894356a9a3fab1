// SPDX-License-Identifier: Apache-2.0
// Counts page views per page and minute in PostgreSQL, each one exactly once: clickstream
// [DIRECTORY]. The database is that of PGHOST, PGDATABASE, PGUSER and so on, as for psql. Events
// that cannot be counted are parked in DIRECTORY (.), which also has the metrics.
#include <chrono>
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

  /// Errors: kclxx::batch_failure; kclxx::fenced_error; kclxx::permanent_error when an event, it
  /// is not known which one, can never be stored.
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
    const auto [epoch, counted] = begin(transaction);
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
    epoch_ = epoch;
    if (failure) throw kclxx::batch_failure(*failure);
  }

  /// Locks the shard's row, raises the epoch if this is the first transaction, and returns the
  /// epoch and the position of the last event that is counted. It is read each time, since a
  /// commit whose answer was lost may have succeeded.
  std::pair<std::int64_t, kclxx::sequence_position> begin(pqxx::work& transaction) {
    const pqxx::row row = transaction.exec_params1(
        epoch_ ? "SELECT epoch, position FROM shards WHERE shard = $1 FOR UPDATE"
               : "INSERT INTO shards VALUES ($1, 1, 'TRIM_HORIZON/0') ON CONFLICT (shard) "
                 "DO UPDATE SET epoch = shards.epoch + 1 RETURNING epoch, position",
        shard_);
    const auto epoch = row["epoch"].as<std::int64_t>();
    if (epoch_ && epoch != *epoch_) {
      throw kclxx::fenced_error("clickstream: epoch " + std::to_string(epoch) + ", not " +
                                std::to_string(*epoch_));
    }
    return {epoch,
            kclxx::sequence_position::from_string(row["position"].as<std::string>()).value()};
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

  /// The server ends the transaction of a worker that is suspended in it: its successor waits for
  /// the locks.
  static constexpr const char* connection_options =
      "fallback_application_name=clickstream connect_timeout=5 "
      "options='-c idle_in_transaction_session_timeout=5s'";

  std::string shard_;
  std::unique_ptr<pqxx::connection> connection_;
  std::optional<std::int64_t> epoch_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : ".";
  kclxx::run_options options;
  options.metrics.directory = directory;
  options.metrics.summary_interval = std::chrono::minutes(1);
  const auto make_counter = [](const kclxx::shard_context& shard) { return view_counter(shard); };
  // While the database is away the shard waits; an event that can never be counted is parked.
  return kclxx::run(
      kclxx::batches(make_counter, {.bad_record = kclxx::bad_record::park,
                                    .lot = std::make_shared<kclxx::parking_file>(directory)}),
      options);
}
