// The plugin loader: a file whose descriptor fits (ABI and build: plugin_file.h) is loaded by Boost.DLL, which only
// this place includes, and registered in one piece. Declared in plugins.h.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/plugin/backend_plugin.h>
#include <tenon/plugin/communicator_plugin.h>
#include <tenon/runtime/log.h>
#include <tenon/runtime/plugins/factory_errors.h>
#include <tenon/runtime/plugins/plugin_file.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/shipped_plugins.h>

#include <vector>  // Boost 1.74's library_info.hpp needs it first

#include <fmt/format.h>
#include <boost/dll/shared_library.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace tenon {

namespace fs = std::filesystem;

namespace {

template <class T>
struct Supplied {
  T what;
  const LoadedPlugin* by = nullptr;
};

// Never destroyed: objects that plugins made may outlive every static, and the libraries stay mapped for good.
struct Registry {
  std::recursive_mutex mutex;  // a backend's name() or an allocator look-up may come back while a plugin registers
  std::deque<LoadedPlugin> plugins;
  std::vector<boost::dll::shared_library> libraries;
  std::map<std::string, Supplied<AllocatorInfo>, std::less<>> allocators;
  // Of plugins that were asked for by path, under a name that another plugin supplies, loaded yet or not: only their
  // path means them.
  std::map<fs::path, std::map<std::string, AllocatorInfo>> by_path;
  std::map<std::string, Supplied<std::unique_ptr<Backend>>, std::less<>> backends;
  std::map<std::string, Supplied<CommunicatorInfo>, std::less<>> communicators;
};
Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

/// What an allocator's name that is taken means for the plugin that brings it along.
enum class TakenName { kRefuse, kReachByPath };

// What one plugin registers, kept aside until its register function has returned. It lives as long as the plugin's
// code, since a backend may change its kernels when it is configured: then they are registered at once.
class Staging final : public plugin::Host {
 public:
  Staging(const Registry& registry, const PluginFile& file, TakenName taken_name)
      : registry_(registry), file_(file), taken_name_(taken_name) {}

  void add_allocator(AllocatorInfo info) override {
    if (is_committed_) refuse("allocators are added by its register function only");
    const auto taken = registry_.allocators.find(info.name);
    if (taken != registry_.allocators.end() && taken_name_ == TakenName::kRefuse)
      refuse("allocator", info.name, *taken->second.by);
    if (info.name.empty() || !info.create) refuse("an allocator needs a name and a factory");
    if (info.name == kIdealAllocator)
      refuse(fmt::format(
          "an allocator cannot be named '{}': tables use that name for the row of an allocator without waste; "
          "rename it",
          info.name));
    if (!allocators.emplace(info.name, with_named_errors(info, file_.path)).second)
      refuse(fmt::format("it adds allocator '{}' twice", info.name));
  }
  void add_backend(std::unique_ptr<Backend> backend) override {
    if (is_committed_) refuse("backends are added by its register function only");
    if (backend == nullptr || backend->name().empty()) refuse("a backend needs a name");
    const std::string name = backend->name();
    DeviceType::named(name);  // from now on "NAME:0" is a device
    const auto taken = registry_.backends.find(name);
    if (taken != registry_.backends.end()) refuse("backend", name, *taken->second.by);
    if (!backends.emplace(name, std::move(backend)).second) refuse(fmt::format("it adds backend '{}' twice", name));
  }
  void add_kernel(DeviceType type, std::string_view operator_name, Kernel kernel) override {
    if (kernel == nullptr) refuse(fmt::format("its kernel for '{}' is null", operator_name));
    if (is_committed_) return register_kernel(type, operator_name, kernel);
    kernels.push_back({type, std::string(operator_name), kernel});
  }
  void log(plugin::LogLevel level, std::string_view message) override {
    log_line(level, fmt::format("{}: {}", file_.name, message));
  }

  void add_communicator(const CommunicatorInfo& info) override {
    if (is_committed_) refuse("communicators are added by its register function only");
    if (info.name.empty() || !info.create) refuse("a communicator needs a name and a factory");
    const auto taken = registry_.communicators.find(info.name);
    if (taken != registry_.communicators.end()) refuse("communicator", info.name, *taken->second.by);
    if (!communicators.emplace(info.name, info).second)
      refuse(fmt::format("it adds communicator '{}' twice", info.name));
  }

  /// What was kept aside is registered.
  void commit() {
    for (const KernelEntry& entry : kernels) register_kernel(entry.type, entry.name, entry.kernel);
    is_committed_ = true;
  }

  struct KernelEntry {
    DeviceType type;
    std::string name;
    Kernel kernel;
  };
  std::map<std::string, AllocatorInfo> allocators;
  std::map<std::string, std::unique_ptr<Backend>> backends;
  std::map<std::string, CommunicatorInfo> communicators;
  std::vector<KernelEntry> kernels;

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw PluginError(fmt::format("plugin {}: {}", file_.path.string(), what));
  }
  [[noreturn]] void refuse(std::string_view kind, std::string_view name, const LoadedPlugin& by) const {
    refuse(fmt::format("{} '{}' is already supplied by plugin '{}' from {}; load one of the two", kind, name, by.name,
                       by.path.string()));
  }
  const Registry& registry_;
  const PluginFile file_;
  const TakenName taken_name_;
  bool is_committed_ = false;
};

/// The loader's own sentence out of a Boost message, which ends in an unrelated errno text.
std::string dlerror_part(const std::string& message) {
  constexpr std::string_view kBegin = "dlerror system message: ";
  const std::size_t begin = message.find(kBegin);
  if (begin == std::string::npos) return message;
  const std::size_t end = message.rfind("):");
  return message.substr(begin + kBegin.size(),
                        end == std::string::npos || end < begin ? end : end - begin - kBegin.size());
}

std::string advice(const std::string& reason) {
  if (reason.find("undefined symbol") != std::string::npos) {
    return "; link what it needs (tenon_add_plugin makes a missing symbol a link error), or rebuild it against this "
           "Tenon";
  }
  if (reason.find("cannot open shared object file") != std::string::npos) {
    return "; install the library it names, or add its folder to LD_LIBRARY_PATH";
  }
  return "";
}

boost::dll::shared_library open_library(const PluginFile& file) {
  try {
    return boost::dll::shared_library(file.path, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& error) {
    const std::string reason = dlerror_part(error.what());
    throw PluginError(
        fmt::format("plugin {}: the loader refused it: {}{}", file.path.string(), reason, advice(reason)));
  }
}

void run_registration(const plugin::Descriptor& descriptor, const PluginFile& file, Staging& staging) {
  if (descriptor.register_plugin == nullptr) {
    throw PluginError(fmt::format("plugin {}: its register function is null", file.path.string()));
  }
  try {
    descriptor.register_plugin(staging);
  } catch (const PluginError&) {
    throw;
  } catch (const std::exception& error) {
    throw PluginError(fmt::format("plugin {}: its register function failed: {}", file.path.string(), error.what()));
  } catch (...) {
    throw PluginError(
        fmt::format("plugin {}: its register function threw something that does not derive from std::exception",
                    file.path.string()));
  }
}

bool has_plugin_file(std::string_view name) {
  std::error_code ignored;
  const auto folders = plugin_folders();
  return std::any_of(folders.begin(), folders.end(), [&](const PluginFolder& folder) {
    return fs::is_regular_file(folder.path / fmt::format("{}.so", name), ignored);
  });
}

/// Whether the search folders have NAME.so, and it is another file than this: the bare name means that one then, in
/// whatever order the two are asked for.
bool name_means_another_file(const std::string& name, const fs::path& path) {
  std::error_code ignored;
  return has_plugin_file(name) && fs::canonical(find_plugin(name), ignored) != path;
}

// The lock is held while the plugin's register function runs: two threads must not load the same file at once, and the
// function only fills the staging area.
const LoadedPlugin& load_locked(Registry& registry, const fs::path& given, TakenName taken_name) {
  std::error_code problem;
  fs::path path = fs::canonical(given, problem);
  if (problem) path = given;
  for (const LoadedPlugin& loaded : registry.plugins) {
    if (loaded.path == path) return loaded;
  }
  const PluginFile file = inspect_plugin_file(path);
  auto digest = std::make_shared<const FileDigest>(path);
  const boost::dll::shared_library library = open_library(file);
  if (!library.has(plugin::kDescriptorSymbol)) {
    throw PluginError(
        fmt::format("plugin {}: its descriptor vanished while loading; the file was changed meanwhile", path.string()));
  }
  const auto& descriptor = library.get<const plugin::Descriptor>(plugin::kDescriptorSymbol);
  static auto& hosts = *new std::deque<Staging>;
  Staging& staging = hosts.emplace_back(registry, file, taken_name);
  registry.libraries.push_back(library);  // from here on it stays mapped, whatever happens
  run_registration(descriptor, file, staging);

  LoadedPlugin& record = registry.plugins.emplace_back();
  record.name = file.name;
  record.version = file.version;
  record.path = path;
  record.digest = std::move(digest);
  for (auto& [name, info] : staging.allocators) {
    record.allocators.push_back(name);
    const bool is_reached_by_path = registry.allocators.contains(name) ||
                                    (taken_name == TakenName::kReachByPath && name_means_another_file(name, path));
    if (is_reached_by_path)
      registry.by_path[path].emplace(name, std::move(info));
    else
      registry.allocators.emplace(name, Supplied<AllocatorInfo>{std::move(info), &record});
  }
  for (auto& [name, backend] : staging.backends) {
    record.backends.push_back(name);
    registry.backends.emplace(name, Supplied<std::unique_ptr<Backend>>{std::move(backend), &record});
  }
  for (auto& [name, info] : staging.communicators) {
    record.communicators.push_back(name);
    registry.communicators.emplace(name, Supplied<CommunicatorInfo>{std::move(info), &record});
  }
  staging.commit();
  record.kernels = staging.kernels.size();
  log_line(plugin::LogLevel::kInfo, fmt::format("loaded plugin {} {} from {}", file.name, file.version, path.string()));
  return record;
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

constexpr std::string_view kCommunicator = "communicator";

template <class Map>
std::string unknown(std::string_view kind, std::string_view name, const Map& map) {
  const std::vector<std::string> names = keys_of(map);
  const std::string near = nearest_name(name, names);
  if (!near.empty()) return fmt::format("unknown {} \"{}\"; did you mean \"{}\"?", kind, name, near);
  const std::string known = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  for (const ShippedCommunicator& shipped : shipped_communicators())
    if (kind == kCommunicator && shipped.name == name)
      return fmt::format("communicator \"{}\" is not here: {}", name, shipped.to_build);
  if (has_plugin_file(name)) {
    return fmt::format("unknown {} \"{}\"; known: {}. The plugin {} supplies no {} of that name", kind, name, known,
                       find_plugin(name).string(), kind);
  }
  return fmt::format("unknown {} \"{}\"; known: {}. No {}.so in:{}", kind, name, known, name, describe_plugin_search());
}

/// Brings `name` into `map`: from NAME.so, else from any plugin of the search folders that supplies it.
template <class Map>
auto& require_locked(Registry& registry, Map& map, std::string_view kind, std::string_view name) {
  auto found = map.find(name);
  if (found == map.end() && has_plugin_file(name)) {
    load_locked(registry, find_plugin(name), TakenName::kRefuse);
    found = map.find(name);
  }
  if (found == map.end()) {
    load_all_plugins();
    found = map.find(name);
  }
  if (found == map.end()) throw ConfigError(unknown(kind, name, map));
  return found->second.what;
}

}  // namespace

const LoadedPlugin& load_plugin(std::string_view name_or_path, const fs::path& base) {
  const std::lock_guard lock(registry().mutex);
  return load_locked(registry(), find_plugin(name_or_path, base), TakenName::kRefuse);
}

std::vector<LoadedPlugin> loaded_plugins() {
  const std::lock_guard lock(registry().mutex);
  return {registry().plugins.begin(), registry().plugins.end()};
}

std::vector<PluginProblem> load_all_plugins() {
  std::vector<PluginProblem> problems;
  const std::lock_guard lock(registry().mutex);
  for (const DiscoveredPlugin& plugin : discover_plugins()) {
    if (plugin.shadowed) continue;
    try {
      if (!plugin.problem.empty()) throw PluginError(plugin.problem);
      load_locked(registry(), plugin.path, TakenName::kRefuse);
    } catch (const PluginError& error) {
      problems.push_back({plugin.path, error.what()});
      log_line(plugin::LogLevel::kInfo, error.what());
    }
  }
  return problems;
}

namespace {

const AllocatorInfo& allocator_of_locked(Registry& all, const LoadedPlugin& plugin, const std::string& name) {
  const auto own = all.by_path.find(plugin.path);
  if (own != all.by_path.end())
    if (const auto found = own->second.find(name); found != own->second.end()) return found->second;
  return all.allocators.find(name)->second.what;
}

}  // namespace

std::vector<const AllocatorInfo*> allocators_of_file(std::string_view path, const fs::path& base) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const LoadedPlugin& plugin = load_locked(all, find_plugin(path, base), TakenName::kReachByPath);
  std::vector<const AllocatorInfo*> allocators;
  for (const std::string& name : plugin.allocators) allocators.push_back(&allocator_of_locked(all, plugin, name));
  return allocators;
}

const AllocatorInfo& find_allocator(std::string_view name, const fs::path& base) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!is_plugin_path(name)) return require_locked(all, all.allocators, "allocator", name);
  const LoadedPlugin& plugin = load_locked(all, find_plugin(name, base), TakenName::kReachByPath);
  if (plugin.allocators.empty()) {
    throw PluginError(fmt::format("plugin {}: it supplies no allocator", plugin.path.string()));
  }
  const auto same = std::find(plugin.allocators.begin(), plugin.allocators.end(), plugin.name);
  if (same == plugin.allocators.end() && plugin.allocators.size() > 1) {
    throw ConfigError(
        fmt::format("plugin {} supplies several allocators ({}): load it with plugins.load and choose one by name",
                    plugin.path.string(), fmt::join(plugin.allocators, ", ")));
  }
  return allocator_of_locked(all, plugin, same == plugin.allocators.end() ? plugin.allocators.front() : *same);
}

std::vector<std::string> allocator_names() {
  const std::lock_guard lock(registry().mutex);
  return keys_of(registry().allocators);
}

std::vector<std::string> default_allocators() {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& [name, info] : registry().allocators) {
    if (!info.what.traits.is_baseline) names.push_back(name);
  }
  return names;
}

Backend& find_backend(std::string_view kind) {
  const std::lock_guard lock(registry().mutex);
  return *require_locked(registry(), registry().backends, "device kind", kind);
}

std::vector<std::string> backend_names() {
  const std::lock_guard lock(registry().mutex);
  return keys_of(registry().backends);
}

const CommunicatorInfo& find_communicator(std::string_view name) {
  const std::lock_guard lock(registry().mutex);
  return require_locked(registry(), registry().communicators, kCommunicator, name);
}

std::vector<std::string> communicator_names() {
  const std::lock_guard lock(registry().mutex);
  return keys_of(registry().communicators);
}

}  // namespace tenon
