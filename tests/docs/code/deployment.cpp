// SPDX-License-Identifier: Apache-2.0
// The program of docs/host/deployment.md, whose records are the changes of a table of DynamoDB.
#include <string>

#include <nlohmann/json.hpp>

#include <kclxx/json.hpp>
#include <kclxx/kclxx.hpp>

struct change {
  std::string event, id;
  nlohmann::json item;  // null after REMOVE
};

void from_json(const nlohmann::json& record, change& to) {
  const nlohmann::json& dynamodb = record.at("dynamodb");
  record.at("eventName").get_to(to.event);
  dynamodb.at("Keys").at("id").at("S").get_to(to.id);
  to.item = dynamodb.value("NewImage", nlohmann::json());
}

void store(const change& one);

int main() {
  return kclxx::run(
      kclxx::each(kclxx::json<change>(store), {.bad_record = kclxx::bad_record::park}));
}
