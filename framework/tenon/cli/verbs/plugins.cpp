// `tenon plugins`: what is loadable, what it offers, and whether it keeps the contract.
#include <tenon/cli/plugins_test.h>
#include <tenon/cli/verb.h>

#include <tenon/core/options.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace {

struct PluginOptions {
  std::string name;
  TableFormat format = TableFormat::kTable;
};

std::string join(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string supplies(const LoadedPlugin& plugin) {
  std::vector<std::string> parts;
  if (!plugin.backends.empty()) parts.push_back("device " + join(plugin.backends));
  if (!plugin.allocators.empty()) parts.push_back("allocator " + join(plugin.allocators));
  if (!plugin.communicators.empty()) parts.push_back("communicator " + join(plugin.communicators));
  if (plugin.kernels != 0) parts.push_back(fmt::format("{} kernels", plugin.kernels));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// Loads what a listing shows, so that it can say what each plugin supplies.
ExitCode list(const PluginOptions& options) {
  Table table({{"name", "name"},
               {"version", "version"},
               {"supplies", "supplies", true, 1},
               {"path", "path"},
               {"sha256", "sha256", false},
               {"problem", "problem", true, 2}});
  for (const DiscoveredPlugin& found : discover_plugins()) {
    std::string problem = found.problem;
    if (found.shadowed) problem = "hidden by a folder before it";
    if (problem.empty()) {
      try {
        const LoadedPlugin& plugin = load_plugin(found.path.string());
        table.add_row({plugin.name, plugin.version, supplies(plugin), plugin.path.string(), plugin.sha256(), {}});
        continue;
      } catch (const PluginError& error) {
        problem = error.what();
      }
    }
    table.add_row({found.path.stem().string(), {}, {}, found.path.string(), {}, problem});
  }
  if (table.empty() && options.format == TableFormat::kTable) {
    print(fmt::format("No plugins. Looked in:{}\n", describe_plugin_search()));
  } else {
    print(render(table, options.format, environment_json()));
  }
  if (options.format == TableFormat::kTable) {
    std::vector<std::string> layers;
    for (const LayerInfo& layer : built_in_layers()) layers.push_back(layer.name);
    print(fmt::format("layers: {} (tenon plugins info NAME)\n", fmt::join(layers, ", ")));
  }
  return ExitCode::kDone;
}

Table option_table(const OptionSchema& schema) {
  Table table({{"option", "option"},
               {"type", "type", true, -1},
               {"default", "default", true, 2},
               {"minimum", "from"},
               {"maximum", "to"},
               {"choices", "one of", true, 1},
               {"help", "help", true, 1}});
  const auto bound = [](const std::optional<OptionValue>& value) {
    return value ? TableCell(to_string(*value)) : TableCell();
  };
  for (const OptionSpec& option : schema) {
    const std::string shown = to_string(option.default_value);
    table.add_row({option.name, std::string(name_of(option.type)), shown.empty() ? std::string("\"\"") : shown,
                   bound(option.minimum), bound(option.maximum),
                   option.choices.empty() ? TableCell() : TableCell(join(option.choices)), option.help});
  }
  return table;
}

struct Offer {
  std::string title;  ///< "allocator caching"
  std::string summary;
  std::string section;  ///< of the TOML file
  OptionSchema schema;
};

std::vector<Offer> offers_of(const LoadedPlugin& plugin) {
  std::vector<Offer> offers;
  for (const std::string& kind : plugin.backends) {
    const Backend& backend = find_backend(kind);
    offers.push_back({"device " + kind, backend.summary(), fmt::format("[device.{}]", kind), backend.options()});
  }
  for (const std::string& name : plugin.allocators) {
    const AllocatorInfo& info = find_allocator(name);
    offers.push_back({"allocator " + name, info.summary, fmt::format("[allocator.{}]", name), info.options});
  }
  for (const std::string& name : plugin.communicators) {
    const CommunicatorInfo& info = find_communicator(name);
    offers.push_back({"communicator " + name, info.summary, fmt::format("[distributed.{}]", name), info.options});
  }
  return offers;
}

/// A plugin by file or descriptor name, else the one that supplies an allocator or device of that name.
std::optional<LoadedPlugin> plugin_for(const std::string& name) {
  if (is_plugin_path(name)) return load_plugin(name);
  load_all_plugins();
  const auto has = [&](const LoadedPlugin& plugin) {
    const auto named = [&](const std::vector<std::string>& words) {
      return std::find(words.begin(), words.end(), name) != words.end();
    };
    return plugin.name == name || named(plugin.allocators) || named(plugin.backends) || named(plugin.communicators);
  };
  const std::vector<LoadedPlugin> all = loaded_plugins();
  const auto found = std::find_if(all.begin(), all.end(), has);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void print_offers(const std::vector<Offer>& offers, TableFormat format) {
  if (format == TableFormat::kTable) {
    for (const Offer& offer : offers) {
      print(fmt::format("\n{}: {}\n", offer.title, offer.summary));
      print(offer.schema.empty()
                ? "  no options\n"
                : fmt::format("{}\n{}", offer.section, option_table(offer.schema).text(output_screen())));
    }
    return;
  }
  Table rows({{"section", "section"},
              {"option", "option"},
              {"type", "type"},
              {"default", "default"},
              {"minimum", "from"},
              {"maximum", "to"},
              {"choices", "one of"},
              {"help", "help"}});
  for (const Offer& offer : offers) {
    const Table options = option_table(offer.schema);
    for (std::vector<TableCell> row : options.rows()) {
      row.insert(row.begin(), offer.section);
      rows.add_row(std::move(row));
    }
  }
  print(render(rows, format, environment_json()));
}

ExitCode info(const PluginOptions& options) {
  if (const auto plugin = plugin_for(options.name)) {
    if (options.format == TableFormat::kTable) {
      Table facts({{"path", "  path"}, {"sha256", "  sha256"}, {"kernels", "  kernels"}});
      facts.add_row({plugin->path.string(), plugin->sha256(), static_cast<std::int64_t>(plugin->kernels)});
      print(fmt::format("{} {}\n{}", plugin->name, plugin->version, facts.lines(output_screen())));
    }
    print_offers(offers_of(*plugin), options.format);
    return ExitCode::kDone;
  }
  for (const LayerInfo& layer : built_in_layers()) {
    if (layer.name != options.name) continue;
    print_offers({{"layer " + layer.name, layer.summary + " (built in: allocator.layers)",
                   fmt::format("[allocator.{}]", layer.name), layer.options}},
                 options.format);
    return ExitCode::kDone;
  }
  std::vector<std::string> known;
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    known.push_back(plugin.name);
    known.insert(known.end(), plugin.allocators.begin(), plugin.allocators.end());
  }
  for (const LayerInfo& layer : built_in_layers()) known.push_back(layer.name);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string near = nearest_name(options.name, known);
  throw ConfigError(fmt::format("no plugin, allocator, device or layer \"{}\"; {}. Looked in:{}", options.name,
                                near.empty() ? "known: " + join(known) : fmt::format("did you mean \"{}\"?", near),
                                describe_plugin_search()));
}

}  // namespace

void add_plugins(Verb program, Outcome& outcome) {
  const Verb verb = program.add_verb("plugins", "list plugins, show their options, test their allocators");
  verb.footer(example("tenon plugins info caching"));
  verb.require_verb(0);
  auto options = std::make_shared<PluginOptions>();

  const Verb listing = verb.add_verb("list", "list every plugin in the search folders, in their order");
  add_format_option(listing, options->format);
  listing.footer(example("tenon plugins list --format json"));
  listing.callback([options, &outcome] { outcome.exit_code = list(*options); });

  const Verb details = verb.add_verb("info", "show what a plugin supplies, and each option's type, default and range");
  details.add_option("name", options->name, "a plugin, allocator, device kind or layer; or a path to a .so").required();
  add_format_option(details, options->format);
  details.footer(example("tenon plugins info caching"));
  details.callback([options, &outcome] { outcome.exit_code = info(*options); });

  add_plugins_test(verb, outcome);
  verb.callback([verb, options, &outcome] {
    if (verb.is_alone()) outcome.exit_code = list(*options);
  });
}

}  // namespace tenon::cli
