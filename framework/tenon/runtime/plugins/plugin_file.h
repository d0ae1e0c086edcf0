// What a plugin file says about itself, read from its bytes before any of its code runs, and whether it fits this
// Tenon.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace tenon {

struct PluginFile {
  std::filesystem::path path;  ///< absolute
  std::string name;
  std::string version;
  std::string build_tag;
  std::uint16_t abi_major = 0;
  std::uint16_t abi_minor = 0;
};

/// Reads the descriptor. Throws PluginError naming the path, what is wrong with the file and what to do: no such file,
/// not a shared library, truncated, no descriptor, an ABI or a build that does not fit.
TENON_API PluginFile inspect_plugin_file(const std::filesystem::path& path);

}  // namespace tenon
