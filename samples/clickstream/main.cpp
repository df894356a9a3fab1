// SPDX-License-Identifier: Apache-2.0
// Counts page views per page and minute in PostgreSQL, each one exactly once. The database is that
// of PGHOST, PGDATABASE, PGUSER and so on, as for psql. Events that cannot be counted are parked
// there, too.
#include <cstdint>
#include <map>
#include <memory>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <kclxx/json.hpp>
#include <kclxx/kclxx.hpp>

struct page_view {
  std::string page;
  std::uint64_t at = 0;  // in milliseconds since 1970
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(page_view, page, at)

namespace {

/// The server ends the transaction of a worker that is suspended in it: its successor waits for the
/// locks.
constexpr const char* connection_options =
    "fallback_application_name=clickstream connect_timeout=5 "
    "options='-c idle_in_transaction_session_timeout=5s'";

/// Counts the page views of one shard.
class view_counter {
 public:
  explicit view_counter(const kclxx::shard_context& shard) : shard_(shard.shard_id()) {}

  /// Errors: kclxx::outage_error; kclxx::permanent_error when some event can never be stored.
  void operator()(kclxx::json_batch<page_view> views) {
    try {
      count(views);
    } catch (const pqxx::data_exception& error) {  // for instance a page that is too long
      throw kclxx::permanent_error(error.what());
    } catch (const pqxx::failure& error) {  // the transaction failed: no event is counted
      connection_.reset();
      throw kclxx::outage_error(error.what());
    }
  }

 private:
  /// Counts the views that are not counted yet, in one transaction with the position.
  void count(kclxx::json_batch<page_view> views) {
    if (!connection_) connection_ = std::make_unique<pqxx::connection>(connection_options);
    pqxx::work transaction(*connection_);
    // Locks the shard's row. Another worker may have counted, or a commit whose answer was lost.
    const auto position = transaction.exec_params1(
        "INSERT INTO shards VALUES ($1, 'TRIM_HORIZON/0') ON CONFLICT (shard) "
        "DO UPDATE SET position = shards.position RETURNING position",
        shard_)[0];
    views = views.after(kclxx::sequence_position::from_string(position.as<std::string>()).value());
    if (views.empty()) return;
    // In the map's order, as all shards do, so that no two of them wait for each other's rows.
    std::map<std::pair<std::string, std::uint64_t>, std::int64_t> sums;
    for (const auto& [view, record] : views) ++sums[{view.page, view.at / 60'000}];
    auto rows = nlohmann::json::array();
    for (const auto& [key, count] : sums) {
      rows.push_back({{"page", key.first}, {"minute", key.second}, {"views", count}});
    }
    transaction.exec_params0(
        "INSERT INTO page_views SELECT page, to_timestamp(minute * 60), views "
        "FROM json_to_recordset($1) AS added (page text, minute bigint, views bigint) "
        "ON CONFLICT (page, minute) DO UPDATE SET views = page_views.views + excluded.views",
        rows.dump());
    transaction.exec_params0("UPDATE shards SET position = $2 WHERE shard = $1", shard_,
                             to_string(views.back().record.position()));
    transaction.commit();
  }

  std::string shard_;
  std::unique_ptr<pqxx::connection> connection_;
};

/// Keeps events that cannot be counted. An event that is parked twice has one row.
class parked_events final : public kclxx::parking_lot {
 public:
  void park(const kclxx::shard_context& shard,
            std::span<const kclxx::failed_record> failed) override {
    pqxx::connection connection(connection_options);
    pqxx::work transaction(connection);
    for (const kclxx::failed_record& parked : failed) {
      const std::string_view data = parked.record.data();
      transaction.exec_params0("INSERT INTO parked VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                               shard.shard_id(), to_string(parked.record.position()),
                               parked.last_error, pqxx::binarystring(data.data(), data.size()));
    }
    transaction.commit();
  }
};

}  // namespace

int main() {
  const auto counter_of = [](const kclxx::shard_context& shard) { return view_counter(shard); };
  // While the database is away the shard waits; an event that can never be counted is parked.
  return kclxx::run(kclxx::batches(
      kclxx::json<page_view>(counter_of),
      {.bad_record = kclxx::bad_record::park, .lot = std::make_shared<parked_events>()}));
}
