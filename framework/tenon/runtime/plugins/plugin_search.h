// Where plugins are looked for. The order, first match wins:
//   1. the folders of `plugins.search` in the experiment's TOML file (relative to that file)
//   2. the folders of the environment variable TENON_PLUGIN_PATH, separated by ':'
//   3. the folder tenon/plugins beside libtenon
// Before all of them: a name with a '/' or ending in ".so" is a file, taken as it is.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/spec_names.h>
#include <tenon/runtime/plugins/plugin_file.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct PluginFolder {
  std::filesystem::path path;  ///< absolute
  std::string origin;          ///< "plugins.search", "TENON_PLUGIN_PATH", "beside libtenon"
};

/// Replaces the folders of rule 1; they are made absolute against the current folder.
TENON_API void set_plugin_search(std::vector<std::filesystem::path> folders);
TENON_API std::vector<PluginFolder> plugin_folders();
/// The folders, one a line, and how to add one: the end of every "not found".
TENON_API std::string describe_plugin_search();

/// The file for a name or a path (relative ones against `base`, or the current folder when that is empty). Throws
/// PluginError that lists where it looked and the nearest plugin that is there.
TENON_API std::filesystem::path find_plugin(std::string_view name_or_path, const std::filesystem::path& base = {});

/// One .so in a plugin folder: its descriptor, or why it would not load.
struct DiscoveredPlugin {
  std::filesystem::path path;
  PluginFile file;  ///< meaningful when problem is empty
  std::string problem;
  bool shadowed = false;  ///< a folder earlier in the order has one of the same file name
};

/// Every .so in the plugin folders, in search order, then by name. Runs no plugin code.
TENON_API std::vector<DiscoveredPlugin> discover_plugins();

/// The folder that libtenon was loaded from.
TENON_API std::filesystem::path library_folder();

}  // namespace tenon
