// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "palimpsest/cli/failure.hpp"

namespace palimpsest::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestFile = std::size_t{1} << 20;

// The path that --config names; empty if it names none.
std::string config_path(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "--config" && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with("--config=")) return words[i].substr(9);
  }
  return {};
}

bool names_option(const std::vector<std::string>& words, const OptionFacts& option) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    for (const std::string& name : option.names) {
      const bool is_short = name.size() == 2;
      if (word == name || word.starts_with(name + "=") || (is_short && word.starts_with(name))) {
        return true;
      }
    }
  }
  return false;
}

Json read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (char c = 0; text.size() <= kLongestFile && file.get(c);) text.push_back(c);
  if (!file.eof()) {
    throw UsageError(
        fmt::format("[{}] cannot be read as a configuration, expected a JSON file of "
                    "at most 1 MiB",
                    path));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw UsageError(fmt::format(
        "[{}] is not a JSON object, expected one such as {{\"iterations\": 50}}", path));
  }
  return json;
}

std::string value_text(const std::string& path, const std::string& key, const Json& value) {
  if (value.is_string() && !value.get<std::string>().empty()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  throw UsageError(fmt::format("[{}] the value of '{}' is {}, expected a number or a text", path,
                               key, value.dump()));
}

void add_option(const std::string& path, const std::string& key, const Json& value,
                const OptionFacts& option, std::vector<std::string>& added) {
  if (!option.takes_value) {
    if (!value.is_boolean()) {
      throw UsageError(fmt::format("[{}] the value of '{}' is {}, expected true or false", path,
                                   key, value.dump()));
    }
    if (value.get<bool>()) added.push_back(option.name);
    return;
  }
  if (value.is_array()) {
    for (const Json& one : value) added.push_back(option.name + "=" + value_text(path, key, one));
    return;
  }
  added.push_back(option.name + "=" + value_text(path, key, value));
}

}  // namespace

std::vector<std::string> with_config_file(const std::vector<std::string>& words,
                                          const CommandLine& line) {
  if (words.empty()) return words;
  const std::vector<OptionFacts> options = line.options(words.front());
  const bool takes_config =
      std::any_of(options.begin(), options.end(),
                  [](const OptionFacts& option) { return option.name == "--config"; });
  const std::string path = takes_config ? config_path(words) : "";
  if (path.empty()) return words;
  std::vector<std::string> added, known;
  for (const OptionFacts& option : options) known.push_back(option.name.substr(2));
  const Json config = read_config(path);
  for (const auto& [key, value] : config.items()) {
    const auto at = std::find(known.begin(), known.end(), key);
    if (at == known.end() || key == "config") {
      std::erase(known, "config");
      const std::string near = nearest_word(key, known);
      throw UsageError(fmt::format("[{}] unknown option '{}'. Try {}", path, key,
                                   near.empty() ? words.front() + " --help" : "'" + near + "'"));
    }
    const OptionFacts& option = options[static_cast<std::size_t>(at - known.begin())];
    if (!names_option(words, option)) add_option(path, key, value, option, added);
  }
  std::vector<std::string> result = {words.front()};
  result.insert(result.end(), added.begin(), added.end());
  result.insert(result.end(), words.begin() + 1, words.end());
  return result;
}

}  // namespace palimpsest::cli
