// `tenon devices`: every device of every backend that loads, and why a kind has none.
#include <tenon/cli/verb.h>

#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <tenon/cli/sections.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

struct DeviceOptions {
  std::string file;
  TableFormat format = TableFormat::kTable;
};

std::string details_of(const DeviceProperties& properties) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : properties.details) parts.push_back(fmt::format("{} {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

ExitCode devices(const DeviceOptions& options) {
  if (!options.file.empty()) install(Config::load(experiment_request(options.file, {})).experiment());
  load_all_plugins();
  Table table({{"device", "device"},
               {"name", "name", true, 2},
               {"capacity_bytes", "memory", true, 3},
               {"free_bytes", "free", true, 2},
               {"compute_units", "units", true, 1},
               {"virtual_memory", "virtual memory"},
               {"asynchronous", "asynchronous"},
               {"details", "details", true, -1},
               {"problem", "problem", true, 4}});
  for (const std::string& kind : backend_names()) {
    Backend& backend = configured_backend(kind);
    const int count = backend.device_count();
    if (count == 0) table.add_row({kind, {}, {}, {}, {}, {}, {}, {}, "none: " + backend.why_unavailable()});
    for (int index = 0; index < count; ++index) {
      DeviceDriver& driver = backend.device(index);
      const DeviceProperties properties = driver.properties();
      const SourceUsage usage = driver.memory().usage();
      const bool limited = properties.capacity_bytes != 0;
      table.add_row(
          {fmt::format("{}:{}", kind, index),
           properties.name,
           limited ? TableCell(Bytes{static_cast<std::int64_t>(properties.capacity_bytes)}) : TableCell("unlimited"),
           limited ? TableCell(Bytes{static_cast<std::int64_t>(usage.free_bytes)}) : TableCell(),
           static_cast<std::int64_t>(properties.compute_units),
           driver.memory().traits().virtual_memory,
           properties.asynchronous,
           details_of(properties),
           {}});
    }
  }
  print(render(table, options.format, environment_json()));
  return ExitCode::kDone;
}

}  // namespace

void add_devices(Verb program, Outcome& outcome) {
  auto options = std::make_shared<DeviceOptions>();
  const Verb verb = program.add_verb("devices", "list the devices of this machine");
  verb.add_option("--config", options->file, "a TOML file with [plugins] and [device.KIND] settings");
  add_format_option(verb, options->format);
  verb.footer(example("tenon devices"));
  verb.callback([options, &outcome] { outcome.exit_code = devices(*options); });
}

}  // namespace tenon::cli
