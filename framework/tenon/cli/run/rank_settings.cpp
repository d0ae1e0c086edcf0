// A line for each setting, which the ranks compare.
#include <tenon/cli/run/rank_settings.h>

#include <tenon/comm/compared_text.h>
#include <tenon/comm/missing_ranks.h>

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {
namespace {

constexpr std::size_t kMostNamed = 20;

bool is_in(std::string_view key, std::string_view section) {
  return key.starts_with(section) && key.substr(section.size()).starts_with('.');
}

/// See compare_settings().
bool may_differ(std::string_view key) {
  for (const char* section : {"plugins", "device", "allocator", "report"})
    if (is_in(key, section)) return true;
  for (const char* whole : {"name", "data.path", "train.threads"})
    if (key == whole) return true;
  return is_in(key, "distributed") && key.ends_with(".timeout");
}

/// Whether there is one counts, and not which.
bool is_file(std::string_view key) { return key == "train.save" || key == "train.resume"; }

std::string text_of(const Config& config, const std::string& verb) {
  const ExperimentConfig experiment = config.experiment();
  std::string kinds;
  for (const Device& device : experiment.devices)
    kinds += fmt::format("{}\"{}\"", kinds.empty() ? "" : ", ", device.type().name());
  std::string text = fmt::format("device={}\nwhat is asked for={}\n", kinds, verb);
  for (const ExplainedSetting& setting : config.explain()) {
    if (may_differ(setting.key)) continue;
    const bool is_named = is_file(setting.key) && setting.text != "\"\"";
    text += fmt::format("{}={}\n", setting.key, is_named ? "a file" : setting.text);
  }
  return text;
}

/// By key, in words.
std::map<std::string, std::string> settings_of(const std::string& text) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('=');
    if (at != std::string::npos) settings.emplace(line.substr(0, at), line.substr(at + 1));
  }
  return settings;
}

std::string differences(const std::vector<std::string>& texts) {
  std::map<std::string, std::map<int, std::string>> by_key;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    for (auto& [key, value] : settings_of(texts[rank])) by_key[key][static_cast<int>(rank)] = value;
  std::string text;
  std::size_t count = 0;
  for (auto& [key, by_rank] : by_key) {
    for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank) by_rank.try_emplace(rank, "none");
    const RankCamps camps = camps_of(by_rank);
    if (camps.count < 2 || ++count > kMostNamed) continue;
    text += fmt::format("{}{} is not the same on all ranks: {}", text.empty() ? "" : "\n  ", key, camps.text);
  }
  if (count > kMostNamed) text += fmt::format("\n  and {} settings more", count - kMostNamed);
  return text + (count == 1 ? ": " : "\n") +
         "start every rank with the same file, the same KEY=VALUE and the same TENON_… variables";
}

}  // namespace

void compare_settings(Communicator& ranks, const Config& config, const std::string& verb) {
  const std::vector<std::string> texts = differing_texts(ranks, text_of(config, verb));
  if (texts.empty()) return;
  if (ranks.rank() == 0) throw ConfigError(differences(texts));
  ranks.barrier()->wait();  // to which rank 0 does not come: it says why
}

}  // namespace tenon::cli
