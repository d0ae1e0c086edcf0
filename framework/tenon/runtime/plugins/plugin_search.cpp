// The search order for plugins.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include <dlfcn.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

namespace tenon {

namespace fs = std::filesystem;

namespace {

struct Configured {
  std::mutex mutex;
  std::vector<fs::path> folders;
};
Configured& configured() {
  static auto& instance = *new Configured;
  return instance;
}

}  // namespace

fs::path library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code problem;
  const fs::path real = fs::canonical(info.dli_fname, problem);  // through a SONAME link to where the plugins are
  return problem ? fs::path(info.dli_fname).parent_path() : real.parent_path();
}

void set_plugin_search(std::vector<fs::path> folders) {
  for (fs::path& folder : folders) folder = fs::absolute(folder).lexically_normal();
  const std::lock_guard lock(configured().mutex);
  configured().folders = std::move(folders);
}

std::vector<PluginFolder> plugin_folders() {
  std::vector<PluginFolder> list;
  {
    const std::lock_guard lock(configured().mutex);
    for (const fs::path& folder : configured().folders) list.push_back({folder, "plugins.search"});
  }
  if (const char* variable = std::getenv("TENON_PLUGIN_PATH")) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      if (colon != 0) list.push_back({fs::absolute(rest.substr(0, colon)).lexically_normal(), "TENON_PLUGIN_PATH"});
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  list.push_back({library_folder() / "tenon" / "plugins", "beside libtenon"});
  return list;
}

std::string describe_plugin_search() {
  std::string text;
  for (const PluginFolder& folder : plugin_folders()) {
    std::error_code ignored;
    text += fmt::format("\n  {} ({}{})", folder.path.string(), folder.origin,
                        fs::is_directory(folder.path, ignored) ? "" : ", no such folder");
  }
  return text +
         "\n  (add a folder with plugins.search in the TOML file or the variable TENON_PLUGIN_PATH, or give a path to "
         "a .so)";
}

fs::path find_plugin(std::string_view name, const fs::path& base) {
  std::error_code ignored;
  if (is_plugin_path(name)) {
    fs::path path = fs::absolute(base.empty() ? fs::path(name) : base / fs::path(name)).lexically_normal();
    if (fs::exists(path, ignored)) return path;
    throw PluginError(fmt::format("plugin {}: no such file; \"{}\" is a path because it has a '/' or ends in .so{}",
                                  path.string(), name,
                                  base.empty() ? "" : fmt::format(", relative to {}", fs::absolute(base).string())));
  }
  const std::vector<PluginFolder> folders = plugin_folders();
  std::vector<std::string> present;
  for (const PluginFolder& folder : folders) {
    fs::path path = folder.path / fmt::format("{}.so", name);
    if (fs::is_regular_file(path, ignored)) return path;
    for (const auto& entry : fs::directory_iterator(folder.path, ignored)) {
      if (entry.path().extension() == ".so") present.push_back(entry.path().stem().string());
    }
  }
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  const std::string near = nearest_name(name, present);
  std::string hint;
  if (!near.empty()) {
    hint = fmt::format(" Did you mean \"{}\"?", near);
  } else if (!present.empty()) {
    hint = fmt::format(" There are {}.", fmt::join(present, ", "));
  }
  throw PluginError(fmt::format("no plugin \"{}\".{} Looked for {}.so, in this order, in:{}", name, hint, name,
                                describe_plugin_search()));
}

std::vector<DiscoveredPlugin> discover_plugins() {
  std::vector<DiscoveredPlugin> found;
  std::set<fs::path> names;
  std::set<fs::path> visited;
  for (const PluginFolder& folder : plugin_folders()) {
    std::error_code ignored;
    if (!visited.insert(fs::weakly_canonical(folder.path, ignored)).second) continue;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder.path, ignored)) {
      if (entry.path().extension() == ".so") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) {
      DiscoveredPlugin plugin;
      plugin.path = path;
      plugin.shadowed = !names.insert(path.filename()).second;
      try {
        plugin.file = inspect_plugin_file(path);
      } catch (const PluginError& error) {
        plugin.problem = error.what();
      }
      found.push_back(std::move(plugin));
    }
  }
  return found;
}

}  // namespace tenon
