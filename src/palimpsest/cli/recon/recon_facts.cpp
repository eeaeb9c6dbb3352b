// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/recon_facts.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "palimpsest/cli/failure.hpp"

namespace palimpsest::cli {

ReconFacts read_recon_facts(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    throw UsageError(fmt::format("[{}] cannot be opened. Try a report of palimpsest recon", path));
  }
  try {
    // In the type of config_file.cpp: another one takes a second more to compile.
    const auto report = nlohmann::ordered_json::parse(file);
    ReconFacts facts{.is_known = true};
    for (const auto& stage : report.at("seconds")) facts.seconds += stage.get<double>();
    facts.announced_peak_bytes = report.at("announced_peak_bytes").get<index_t>();
    facts.measured_peak_bytes = report.at("measured_peak_bytes").get<index_t>();
    return facts;
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("[{}] is not a report of palimpsest recon: {}", path, error.what()));
  }
}

}  // namespace palimpsest::cli
