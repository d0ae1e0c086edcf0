// Facts about the machine and the build.
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace tenon {

namespace {

/// The value after the colon of the first line of a /proc file that begins with `key`; empty when there is none.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

Environment gather() {
  Environment env;
  utsname names{};
  if (::uname(&names) == 0) {
    env.host = names.nodename;
    env.system = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  }
  env.cpu = proc_value("/proc/cpuinfo", "model name");
  if (env.cpu.empty()) env.cpu = names.machine;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  env.cores = ::sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable)
                                                                  : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  env.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#if defined(__clang__)
  env.compiler = fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  env.compiler = fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  env.build_type = TENON_BUILD_TYPE;
  env.version = TENON_VERSION;
  return env;
}

}  // namespace

const Environment& environment() {
  static const Environment gathered = gather();
  return gathered;
}

std::string environment_json() {
  const Environment& env = environment();
  nlohmann::ordered_json block;
  block["host"] = env.host;
  block["system"] = env.system;
  block["cpu"] = env.cpu;
  block["cores"] = env.cores;
  block["memory_bytes"] = env.memory_bytes;
  block["compiler"] = env.compiler;
  block["build_type"] = env.build_type;
  block["tenon_version"] = env.version;
  block["plugins"] = nlohmann::ordered_json::array();
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    block["plugins"].push_back({{"name", plugin.name},
                                {"version", plugin.version},
                                {"path", plugin.path.string()},
                                {"sha256", plugin.sha256()}});
  }
  return block.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tenon
