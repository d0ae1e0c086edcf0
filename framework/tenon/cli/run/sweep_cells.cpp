// Names and options of cells.
#include <tenon/cli/run/sweep_cells.h>

#include <tenon/cli/process/output_folder.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tenon::cli {

namespace {

std::string key_of(const std::string& word) { return word.substr(0, word.find('=')); }

}  // namespace

std::vector<std::string> words_of_each(const RunOptions& options, const std::vector<SweepPoint>& cells) {
  std::vector<std::string> words;
  if (options.watch) words.emplace_back("--watch");
  if (!options.metrics.empty()) words.insert(words.end(), {"--metrics", options.metrics});
  if (options.has_interval) words.insert(words.end(), {"--interval", fmt::format("{}", options.interval)});
  std::set<std::string> varied;
  for (const SweepPoint& cell : cells) {
    for (const std::string& word : cell.overrides) varied.insert(key_of(word));
  }
  for (const std::string& key : varied) words.insert(words.end(), {"--varied", key});
  return words;
}

std::vector<std::string> overrides_of(const RunOptions& options, const SweepPoint& cell) {
  std::vector<std::string> words;
  for (const std::string& word : options.overrides) {
    const bool is_swept = std::any_of(cell.overrides.begin(), cell.overrides.end(),
                                      [&](const std::string& own) { return key_of(own) == key_of(word); });
    if (!is_swept) words.push_back(word);
  }
  words.insert(words.end(), cell.overrides.begin(), cell.overrides.end());
  return words;
}

RunOptions alone(const RunOptions& options, const SweepPoint& cell) {
  RunOptions one = options;
  one.sweep = false;
  one.no_sweep = true;
  one.overrides = overrides_of(options, cell);
  return one;
}

Config config_of(const RunOptions& options, const SweepPoint& cell) {
  return Config::load(request_of(alone(options, cell)));
}

std::string cell_folder_name(std::size_t index, const std::vector<std::string>& values) {
  std::string name = fmt::format("{:03}", index + 1);
  for (const std::string& value : values) name += "-" + value;
  return plain_name(name, '_').substr(0, 100);
}

std::string cell_label(std::size_t index, std::size_t count) { return fmt::format("[{}/{}] ", index + 1, count); }

int code_of_both(int one, int other) {
  if (one == 0 || other == 0 || one == other) return one != 0 ? one : other;
  return static_cast<int>(ExitCode::kFailed);
}

}  // namespace tenon::cli
