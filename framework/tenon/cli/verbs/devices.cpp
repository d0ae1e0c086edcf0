// `tenon devices`: every device of every backend that loads, and why a kind has none; with --watch, who uses them.
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/terminal/without_effect.h>
#include <tenon/cli/verb.h>

#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/device_use.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <tenon/cli/sections.h>

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

namespace tenon::cli {

namespace {

struct DeviceOptions {
  std::string file;
  TableFormat format = TableFormat::kTable;
  bool watch = false;
  double interval = 1;
  int count = 0;
};

std::string details_of(const DeviceProperties& properties) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : properties.details) parts.push_back(fmt::format("{} {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A row for each process, or for a device that nobody uses.
void add_use(Table& table, const std::string& device, const DeviceUse& use) {
  const auto row = [&](const ProcessUse* process) {
    const bool limited = use.total_bytes != 0;
    table.add_row({device,
                   use.busy ? TableCell(Ratio{*use.busy}) : TableCell(),
                   Bytes{static_cast<std::int64_t>(use.used_bytes)},
                   limited ? TableCell(Bytes{static_cast<std::int64_t>(use.total_bytes)}) : TableCell(),
                   limited
                       ? TableCell(Ratio{static_cast<double>(use.used_bytes) / static_cast<double>(use.total_bytes)})
                       : TableCell(),
                   process != nullptr ? TableCell(static_cast<std::int64_t>(process->pid)) : TableCell(),
                   process != nullptr ? TableCell(process->command) : TableCell(),
                   process != nullptr ? TableCell(Bytes{static_cast<std::int64_t>(process->bytes)}) : TableCell(),
                   {}});
  };
  if (use.processes.empty()) row(nullptr);
  for (const ProcessUse& process : use.processes) row(&process);
}

/// One look at every device of every kind that can tell.
Table look_at_all() {
  Table table({{"device", "device"},
               {"busy", "busy"},
               {"used_bytes", "used"},
               {"total_bytes", "memory"},
               {"used", "used share"},
               {"pid", "process", true, 1, true},
               {"command", "command"},
               {"process_bytes", "of it"},
               {"problem", "problem", true, 4}});
  for (const std::string& kind : backend_names()) {
    Backend& backend = configured_backend(kind);
    auto* const reporter = dynamic_cast<ReportsUse*>(&backend);
    if (reporter == nullptr) continue;
    const int count = reporter->visible_devices(backend.device_count());
    for (int index = 0; index < count; ++index) {
      const std::string device = fmt::format("{}:{}", kind, index);
      try {
        add_use(table, device, reporter->look(index));
      } catch (const Error& error) {
        table.add_row({device, {}, {}, {}, {}, {}, {}, {}, error.what()});
      }
    }
  }
  return table;
}

ExitCode watch(const DeviceOptions& options) {
  catch_interrupts("");
  look_at_all();  // from where on the first figures are counted
  for (int shown = 0; options.count == 0 || shown < options.count; ++shown) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.interval);
    while (interrupt_signal() == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (interrupt_signal() != 0) break;
    if (shown > 0 && options.format == TableFormat::kTable) print("\n");
    print(render(look_at_all(), options.format, environment_json()));
  }
  return ExitCode::kDone;
}

ExitCode devices(const DeviceOptions& options) {
  if (!options.file.empty()) install(Config::load(experiment_request(options.file, {})).experiment());
  load_all_plugins();
  if (options.watch) return watch(options);
  if (options.count != 0) say_without_effect({"--count"}, "without --watch there is one look");
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
  verb.add_flag("--watch", options->watch, "show again and again how busy they are, and which processes use them");
  verb.add_option("--interval", options->interval, "seconds between two looks").range(0.01, 86400.).shows_default();
  verb.add_option("--count", options->count, "end after so many looks; 0 = at Ctrl-C")
      .range(0, 1'000'000)
      .shows_default();
  verb.footer(example("tenon devices --watch"));
  verb.callback([options, &outcome] { outcome.exit_code = devices(*options); });
}

}  // namespace tenon::cli
