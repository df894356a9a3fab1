// SPDX-License-Identifier: Apache-2.0
#include "simulation/meetings.hpp"

#include <fstream>
#include <ostream>
#include <set>
#include <stdexcept>

namespace kclxx::simulation {

void meetings::print(std::ostream& out) const {
  out << "| |";
  for (const std::string_view state : states_) out << " " << state << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < states_.size(); ++i) out << "--:|";
  for (std::size_t fault = 0; fault < faults_.size(); ++fault) {
    out << "\n| " << faults_[fault] << " |";
    for (std::size_t state = 0; state < states_.size(); ++state) {
      out << " " << counts_[fault * states_.size() + state] << " |";
    }
  }
  out << "\n";
}

std::vector<std::string> meetings::differences(const std::string& file) const {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + " cannot be opened");
  std::set<std::string> never;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#' && line[0] != ' ') never.insert(line);
  }
  std::vector<std::string> result;
  for (std::size_t fault = 0; fault < faults_.size(); ++fault) {
    for (std::size_t state = 0; state < states_.size(); ++state) {
      const std::string pair = std::string(faults_[fault]) + " | " + std::string(states_[state]);
      const bool is_listed = never.erase(pair) > 0;
      const bool has_met = counts_[fault * states_.size() + state] > 0;
      if (has_met == is_listed) {
        result.push_back(pair + (has_met ? ": is listed as impossible, and came together"
                                         : ": never came together"));
      }
    }
  }
  for (const std::string& rest : never) result.push_back(rest + ": is no such pair");
  return result;
}

}  // namespace kclxx::simulation
