// `tenon config`: whether a file is right, what it means, and which line, variable or argument won.
#include <tenon/cli/sections.h>
#include <tenon/cli/verb.h>

#include <tenon/core/options.h>
#include <tenon/core/text/counted.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/config/unread_settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace tenon::cli {

namespace {

struct ConfigOptions {
  std::string file;
  std::vector<std::string> words;
  TableFormat format = TableFormat::kTable;
};

Config load(const ConfigOptions& options, std::vector<std::string>* keys = nullptr) {
  std::vector<std::string> overrides;
  for (const std::string& word : options.words) {
    if (keys != nullptr && word.find('=') == std::string::npos) {
      keys->push_back(word);
    } else {
      overrides.push_back(word);
    }
  }
  return Config::load(experiment_request(options.file, std::move(overrides)));
}

ExitCode check(const ConfigOptions& options) {
  const Config config = load(options);
  for (const std::string& remark : unread_model_settings(config)) say(remark);
  const ExperimentConfig experiment = config.experiment();
  const std::size_t cells = config.sweep_cells().size();
  if (options.format != TableFormat::kTable) {
    Table table({{"file", "file"},
                 {"experiment", "experiment"},
                 {"device", "device"},
                 {"allocator", "allocator"},
                 {"sweep_cells", "sweep cells"},
                 {"sweep_keys", "sweep over"}});
    table.add_row({options.file, experiment.name, experiment.device_names(), experiment.allocator.policy.name,
                   static_cast<std::int64_t>(cells),
                   cells == 0 ? TableCell() : TableCell(fmt::format("{}", fmt::join(config.sweep_keys(), ", ")))});
    print(render(table, options.format, environment_json()));
    return ExitCode::kDone;
  }
  print(fmt::format("{}: valid. {} on {} under {}{}\n", options.file, experiment.name, experiment.device_names(),
                    experiment.allocator.policy.name,
                    cells == 0 ? ""
                               : fmt::format("; a sweep of {} over {}", counted(cells, "cell"),
                                             fmt::join(config.sweep_keys(), ", "))));
  return ExitCode::kDone;
}

ExitCode show(const ConfigOptions& options) {
  const Config config = load(options);
  if (options.format == TableFormat::kTable) {
    print_exactly(config.resolved_toml());
    return ExitCode::kDone;
  }
  Table table({{"key", "key"}, {"value", "value"}});
  for (const ExplainedSetting& setting : config.explain()) table.add_row({setting.key, setting.text});
  print(render(table, options.format, environment_json()));
  return ExitCode::kDone;
}

ExitCode explain(const ConfigOptions& options) {
  std::vector<std::string> keys;
  const Config config = load(options, &keys);
  Table table({{"key", "key"},
               {"value", "value", true, 3},
               {"from", "from", true, 2},
               {"overruled", "instead of", true, 1},
               {"help", "help"}});
  const std::vector<ExplainedSetting> settings = config.explain();
  std::vector<std::string> known;
  for (const ExplainedSetting& setting : settings) known.push_back(setting.key);
  for (const std::string& key : keys) {
    const bool any = std::any_of(known.begin(), known.end(),
                                 [&](const std::string& name) { return name == key || name.starts_with(key + "."); });
    if (any) continue;
    const std::string near = nearest_name(key, known);
    throw ConfigError(
        fmt::format("unknown setting '{}'{}", key,
                    near.empty() ? "; leave it out to see all" : fmt::format("; did you mean '{}'?", near)));
  }
  for (const ExplainedSetting& setting : settings) {
    const bool wanted = keys.empty() || std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
                          return setting.key == key || setting.key.starts_with(key + ".");
                        });
    if (!wanted) continue;
    std::vector<std::string> overruled;
    for (const auto& source : setting.overruled)
      overruled.push_back(fmt::format("{} ({})", source.text, source.position.str()));
    table.add_row({setting.key, setting.text, setting.winner.str(),
                   overruled.empty() ? TableCell() : TableCell(fmt::format("{}", fmt::join(overruled, ", "))),
                   setting.choices.empty() ? setting.help
                                           : fmt::format("{}: {}", setting.help, fmt::join(setting.choices, ", "))});
  }
  print(render(table, options.format, environment_json()));
  return ExitCode::kDone;
}

}  // namespace

void add_config(Verb program, Outcome& outcome) {
  const Verb verb = program.add_verb("config", "check and explain an experiment's file");
  verb.require_verb(1);
  verb.footer(example("tenon config explain experiment.toml train.lr=0.01"));
  struct Kind {
    const char* name;
    const char* help;
    const char* words;
    ExitCode (*run)(const ConfigOptions&);
  };
  for (const Kind& kind : {Kind{"check", "check a file", "KEY=VALUE overrides", &check},
                           Kind{"show", "print every setting in force, as TOML", "KEY=VALUE overrides", &show},
                           Kind{"explain", "show which line, variable or argument set each value",
                                "KEY=VALUE overrides, or keys and sections to show", &explain}}) {
    auto options = std::make_shared<ConfigOptions>();
    const Verb inner = verb.add_verb(kind.name, kind.help);
    inner.add_option("file", options->file, "the experiment's TOML file").required();
    inner.add_option("settings", options->words, kind.words);
    add_format_option(inner, options->format);
    inner.footer(example(fmt::format("tenon config {} experiment.toml", kind.name)));
    inner.callback([options, run = kind.run, &outcome] { outcome.exit_code = run(*options); });
  }
}

}  // namespace tenon::cli
