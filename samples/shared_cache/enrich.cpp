// SPDX-License-Identifier: Apache-2.0
#include "enrich.hpp"

#include <stdexcept>
#include <vector>

namespace {

std::vector<std::unique_ptr<connection>> connect(const std::filesystem::path& output,
                                                 std::size_t count) {
  std::vector<std::unique_ptr<connection>> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(std::make_unique<connection>(output));
  return all;
}

}  // namespace

lookup_table::lookup_table(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + " cannot be read");
  for (std::string line; std::getline(in, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) values_[line.substr(0, equals)] = line.substr(equals + 1);
  }
}

std::string_view lookup_table::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "unknown" : std::string_view(found->second);
}

void connection::write(const std::string& lines) {
  out_ << lines << std::flush;
  if (!out_) throw std::runtime_error("the output cannot be written");
}

shared_state::shared_state(const std::filesystem::path& table_file,
                           const std::filesystem::path& output, std::size_t connections)
    : table(table_file), pool(connect(output, connections)) {}

void enrich::process_records(kclxx::record_batch batch, const kclxx::checkpointer&) {
  std::string lines;
  for (const kclxx::record& record : batch) {
    const std::string_view key = record.partition_key().value_or("");
    lines.append(shard_id_).append(" ").append(key).append(" ");
    lines.append(shared_->table.find(key)).append(" ").append(record.data()).append("\n");
  }
  shared_->pool.take()->write(lines);
}
