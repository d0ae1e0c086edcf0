// Merging and validating settings. Order matters: plugins first, since the schemas of devices and allocators come from
// them. Unknown sections and keys are refused by section_lookup.
#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>
#include <tenon/core/spec_names.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/config_sources.h>
#include <tenon/runtime/config/config_state.h>
#include <tenon/runtime/config/toml_reader.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon {

namespace fs = std::filesystem;
using State = Config::State;

namespace {

/// Runs `action`; what it throws gets the position in front and keeps its exit code.
template <class Action>
auto positioned(const Position& position, Action action) {
  if (position.origin == Origin::kDefault) return action();
  try {
    return action();
  } catch (const PluginError& error) {
    throw PluginError(fmt::format("{}: {}", position.str(), error.what()));
  } catch (const Error& error) {
    throw config_error(position, error.what());
  }
}

Position position_of(const State& state, std::string_view key) {
  const Setting* setting = state.find(key);
  return setting == nullptr ? Position{} : setting->winner().value.position;
}

/// `device = …` without a section, of one device or of a list.
std::string whole_key(const ConfigEntry& entry) {
  if (entry.key != "device" || entry.is_empty_table) return entry.key;
  const auto* const word = std::get_if<std::string>(&entry.value.value);
  const bool is_list = word == nullptr || (entry.value.bare && word->find(',') != std::string::npos);
  return is_list ? "device.names" : "device.name";
}

void merge(State& state, ConfigEntry entry) {
  entry.key = whole_key(entry);
  const auto known = std::find_if(state.settings.begin(), state.settings.end(),
                                  [&](const Setting& setting) { return setting.key == entry.key; });
  if (known != state.settings.end()) {
    known->entries.push_back(std::move(entry));
  } else {
    state.settings.push_back({entry.key, {entry}});
  }
}

/// The communicator that is named, with the options of its section.
DistributedConfig parse_distributed(State& state) {
  DistributedConfig distributed{.name = state.options.at("distributed").text("name"), .options = {}};
  if (distributed.name.empty()) return distributed;
  positioned(position_of(state, "distributed.name"),
             [&] { distributed.options = state.options_of(state.book.communicator_section(distributed.name)); });
  return distributed;
}

/// Every entry is checked, not only the winner: a mistake in the file does not hide behind the command line.
void apply(State& state, const std::string& key) {
  const Setting* setting = state.find(key);
  if (setting == nullptr) return;
  for (const ConfigEntry& entry : setting->entries) {
    if (entry.is_empty_table) {
      state.book.require_section(key, entry.key_position);
      continue;
    }
    const SectionSpec* section = state.book.section_of(key, entry.key_position, entry.section_position);
    if (section == nullptr) continue;
    set_option(state.options_of(*section), *section, state.book.option(*section, split_key(key).option), entry.value,
               state.base_of(entry.value.position));
  }
}

void load_named_plugins(State& state) {
  apply(state, "plugins.search");
  apply(state, "plugins.load");
  const Options& plugins = state.options.at("plugins");
  std::vector<fs::path> folders;
  for (const std::string& folder : split_list(plugins.text("search"))) {
    folders.push_back(state.base_of(position_of(state, "plugins.search")) / folder);
  }
  set_plugin_search(std::move(folders));
  const Position position = position_of(state, "plugins.load");
  for (const std::string& plugin : split_list(plugins.text("load"))) {
    positioned(position, [&] { load_plugin(plugin, state.base_of(position)); });
  }
}

/// Allocators that are given as paths, so that their sections [allocator.NAME] are known. Those of the file count where
/// the command line names others, too: their sections stand in the file all the same.
void load_allocator_files(State& state) {
  const auto load = [&](const ConfigValue& value) {
    const auto* word = std::get_if<std::string>(&value.value);
    if (word == nullptr || !is_plugin_path(word_of_spec(*word))) return;
    positioned(value.position, [&] { find_allocator(word_of_spec(*word), state.base_of(value.position)); });
  };
  const Setting* name = state.find("allocator.name");
  if (name != nullptr) load(name->winner().value);
  for (const SweepRow& row : state.rows) {
    for (const ConfigEntry& entry : row.settings) {
      if (entry.key == "allocator.name") load(entry.value);
    }
  }
  for (const Axis& axis : state.axes) {
    if (axis.key != "allocator.name") continue;
    for (const ConfigValue& value : axis.values) load(value);
  }
  ConfigList displaced = state.displaced_allocators;
  for (std::size_t i = 0; name != nullptr && i + 1 < name->entries.size(); ++i)
    displaced.push_back(name->entries[i].value);
  for (const ConfigValue& value : displaced) {
    try {
      load(value);
    } catch (const Error&) {  // nobody asks for it
    }
  }
}

/// What a section sets, for a policy whose options may be those of another build of the same plugin.
Options options_for(const OptionSchema& schema, const Options& section) {
  Options options(schema);
  for (const auto& [name, value] : section.entries(true)) {
    if (std::ranges::find(schema, name, &OptionSpec::name) != schema.end()) options.set_text(name, value);
  }
  return options;
}

/// Which device a kind without a number means: the first; of a rank its own, where the machine has so many.
DeviceIndex usual_index(const State& state, Backend& backend) {
  if (state.options.at("distributed").text("name").empty()) return 0;
  const int own = rank_environment().local_rank;
  return static_cast<DeviceIndex>(own > 0 && own < backend.device_count() ? own : 0);
}

Device parse_device(const State& state, const std::string& text, const Position& position) {
  return positioned(position, [&] {
    Backend& backend = find_backend(std::string_view(text).substr(0, text.find(':')));  // its plugin is loaded by then
    Device device(text);
    if (!device.has_index()) device.set_index(usual_index(state, backend));
    return device;
  });
}

/// Those of device.names where it is given, unless device.name stands somewhere stronger. What is printed of the two is
/// what is in force.
std::vector<Device> parse_devices(State& state) {
  Options& section = state.options.at("device");
  const Position one = position_of(state, "device.name"), many = position_of(state, "device.names");
  const std::vector<std::string> names = split_list(section.text("names"));
  if (names.empty() || one.origin > many.origin) {
    section.set_text("names", "");
    state.names_kind = section.text("name").find(':') == std::string::npos;
    return {parse_device(state, section.text("name"), one)};
  }
  std::vector<Device> devices;
  for (const std::string& name : names) {
    const Device device = parse_device(state, name, many);
    if (std::ranges::find(devices, device) != devices.end())
      throw config_error(many, fmt::format("device.names has {} twice: each device takes one part of a batch", name));
    if (!devices.empty() && device.type() != devices.front().type())
      throw config_error(many, fmt::format("device.names has {} beside {}: they must be of one kind", device.str(),
                                           devices.front().str()));
    devices.push_back(device);
  }
  section.set_text("name", names.front());
  return devices;
}

/// The policy of a SPEC, its section's options with the SPEC's own on top, and the layers.
StackConfig parse_stack(State& state, const std::string& spec, const Position& position) {
  StackConfig stack;
  positioned(position, [&] {
    stack.policy = find_allocator(word_of_spec(spec), state.base_of(position));
    stack.options =
        options_for(stack.policy.options, state.options_of(state.book.allocator_section(stack.policy.name)));
    set_options_from_spec(stack.options, spec);
  });
  return stack;
}

/// The SPEC's options become settings of the allocator's section: what prints settings then shows those in force, and
/// where they come from. Those that the section lacks, which is another build's, stay in the SPEC.
void settle_spec(State& state, const std::string& spec, const Position& position) {
  const SectionSpec& section = state.book.allocator_section(state.allocator.policy.name);
  std::vector<std::string> foreign;
  for (const auto& [name, text] : options_of_spec(spec)) {
    if (std::ranges::find(section.options, name, &OptionSpec::name) == section.options.end()) {
      foreign.push_back(fmt::format("{}={}", name, text));
      continue;
    }
    state.options_of(section).set_text(name, text);
    merge(state, {.key = fmt::format("{}.{}", section.name, name),
                  .key_position = position,
                  .value = {.value = text, .position = position, .text = toml_quote(text), .typed = {}}});
  }
  state.allocator_spec = spec_with(std::string(word_of_spec(spec)), fmt::format("{}", fmt::join(foreign, ",")));
}

std::vector<LayerConfig> parse_layers(State& state, const std::string& joined, const Position& position) {
  std::vector<LayerConfig> layers;
  for (const std::string& name : split_list(joined)) {
    positioned(position, [&] { find_layer(name); });
    layers.push_back({name, state.options_of(state.book.allocator_section(name))});
  }
  return layers;
}

/// One value that a sweep gives to `key`, against the setting's type, range and, for plugins, what there is.
void check_swept(State& state, const std::string& key, const Position& key_position, const ConfigValue& value) {
  const SectionSpec* section = state.book.section_of(key, key_position, key_position);
  if (section == nullptr) return;
  Options trial = state.options_of(*section);
  set_option(trial, *section, state.book.option(*section, split_key(key).option), value, state.base_of(value.position));
  if (key == "device.name") parse_device(state, trial.text("name"), value.position);
  if (key == "allocator.name") parse_stack(state, trial.text("name"), value.position);
  if (key == "allocator.layers") parse_layers(state, trial.text("layers"), value.position);
}

void check_sweep(State& state) {
  for (const SweepRow& row : state.rows) {
    for (const ConfigEntry& entry : row.settings) check_swept(state, entry.key, entry.key_position, entry.value);
  }
  for (const Axis& axis : state.axes) {
    for (const ConfigValue& value : axis.values) check_swept(state, axis.key, axis.position, value);
  }
}

}  // namespace

const Setting* State::find(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

fs::path State::base_of(const Position& position) const {
  return position.origin == Origin::kFile ? folder : fs::current_path();
}

Options& State::options_of(const SectionSpec& section) {
  return options.try_emplace(section.name, section.options).first->second;
}

Config Config::load(const ConfigRequest& request) {
  auto made = std::make_shared<State>();
  State& state = *made;
  state.file = request.file;
  state.folder =
      request.file.empty() ? fs::current_path() : fs::absolute(request.file).lexically_normal().parent_path();
  std::vector<SectionSpec> sections = runtime_sections();
  sections.insert(sections.end() - 1, request.sections.begin(), request.sections.end());  // before [report]
  state.book = SectionLookup(std::move(sections));
  for (const SectionSpec& section : state.book.fixed()) state.options_of(section);

  if (!request.file.empty()) {
    for (ConfigEntry& entry : read_toml_file(request.file)) merge(state, std::move(entry));
  }
  if (request.use_environment) {
    for (ConfigEntry& entry : settings_from_environment()) merge(state, std::move(entry));
  }
  for (const std::string& argument : request.overrides) merge(state, setting_from_argument(argument));

  take_sweep(state, request);
  load_named_plugins(state);
  load_allocator_files(state);
  for (const Setting& setting : state.settings) apply(state, setting.key);
  state.devices = parse_devices(state);
  const Options& allocator = state.options.at("allocator");
  state.allocator = parse_stack(state, allocator.text("name"), position_of(state, "allocator.name"));
  settle_spec(state, allocator.text("name"), position_of(state, "allocator.name"));
  state.allocator.layers = parse_layers(state, allocator.text("layers"), position_of(state, "allocator.layers"));
  state.distributed = parse_distributed(state);
  check_sweep(state);
  if (request.ignore_sweep) {
    state.rows.clear();
    state.axes.clear();
    state.remarks.clear();
  }
  return Config(std::move(made));
}

ExperimentConfig Config::experiment() const {
  const State& state = *state_;
  ExperimentConfig config;
  config.name = state.options.at("").text("name");
  if (config.name.empty()) config.name = state.file.empty() ? "experiment" : state.file.stem().string();
  config.folder = state.folder.string();
  config.devices = state.devices;
  config.device = state.devices.front();
  config.names_device_kind = state.names_kind;
  config.allocator = state.allocator;
  config.distributed = state.distributed;
  for (const SectionSpec& section : state.book.fixed())
    config.sections.emplace(section.name, state.options.at(section.name));
  for (const auto& [name, section] : state.book.dynamic()) {
    constexpr std::string_view kDevice = "device.";
    const auto found = state.options.find(name);
    if (name.starts_with(kDevice) && found != state.options.end()) {
      config.backend_options.emplace(name.substr(kDevice.size()), found->second);
    }
  }
  for (const Setting& setting : state.settings) config.positions.emplace(setting.key, setting.winner().value.position);
  for (const PluginFolder& folder : plugin_folders()) {
    if (folder.origin == "plugins.search") config.plugin_search.push_back(folder.path.string());
  }
  return config;
}

}  // namespace tenon
