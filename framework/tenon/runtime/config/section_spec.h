// Which sections and keys a configuration file may have. The runtime declares its own; layers above add theirs
// (model, data, train) by passing sections in.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>

#include <string>
#include <vector>

namespace tenon {

/// One [section] with fixed keys, e.g. {"train", "how it is trained", {OptionSpec::integer("epochs", 1, "…").range(1,
/// 1000)}}.
struct SectionSpec {
  std::string name;     ///< "train"; may have dots: "model.mlp"
  std::string summary;  ///< one line
  OptionSchema options;
  std::vector<std::string>
      lists;  ///< names of kText options that take a TOML array; Options::text joins the items with ','
  std::vector<std::string> paths;  ///< names of kText options that are paths: made absolute against the file's folder
};

/// Whether that is the memory of a device: `capacity` in [device.KIND].
bool is_device_memory(const SectionSpec& section, const OptionSpec& option);

/// The items of a list option.
TENON_API std::vector<std::string> split_list(const std::string& joined);

/// The runtime's own sections: "" (the top level), device, allocator, plugins, distributed, report. Sections
/// [device.KIND], [allocator.NAME] and [distributed.NAME] follow the schemas that plugins declare.
TENON_API std::vector<SectionSpec> runtime_sections();

}  // namespace tenon
