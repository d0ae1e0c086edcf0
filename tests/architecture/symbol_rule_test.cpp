// What the includes cannot show: which symbols the compiled files need, and from which layer they come.
//
// Read with nm from the objects of libtenon and from the plugins of the build that this test belongs to.
#include "architecture/layers.h"
#include "architecture/source_tree.h"

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

const fs::path kObjects = fs::path(TENON_BINARY_DIR) / "framework/CMakeFiles";
/// Of one library, by how they are compiled.
constexpr const char* kTargets[] = {"tenon.dir", "tenon_cold.dir"};

struct Symbols {
  std::set<std::string> defined;  ///< those that one object alone defines: no templates, no inline functions
  std::set<std::string> needed;
};

/// nm's POSIX format, a line a symbol: NAME TYPE [VALUE SIZE].
Symbols symbols_of(const fs::path& file, const std::string& options) {
  const std::string command = std::string(TENON_NM) + " -P " + options + " '" + file.string() + "' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  Symbols symbols;
  if (pipe == nullptr) return symbols;
  std::string text;
  char buffer[1 << 16];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe.get())) != 0;) text.append(buffer, got);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, type;
    if (!(fields >> name >> type)) continue;
    if (type == "U" || type == "w") {
      symbols.needed.insert(name.substr(0, name.find('@')));
    } else if (type == "T" || type == "D" || type == "B" || type == "R") {
      symbols.defined.insert(name);
    }
  }
  return symbols;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    &std::free);
  return status == 0 ? text.get() : name;
}

/// What an object was made of, below framework/tenon: a file ("tenon/memory/block.cpp.o") or all files of a room
/// ("Unity/unity_memory-layers_cxx.cxx.o", as tenon_join_rooms names them).
fs::path origin_of(const fs::path& object, const fs::path& target) {
  std::string name = object.filename().string();
  if (constexpr std::string_view kBegin = "unity_", kEnd = "_cxx.cxx.o";
      name.starts_with(kBegin) && name.ends_with(kEnd)) {
    name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    std::ranges::replace(name, '-', '/');
    return name;
  }
  return fs::relative(object, target / "tenon").replace_extension();
}

/// The objects of libtenon by what they were made of; those of sources that are gone are left out. Empty where there is
/// no build.
const std::map<std::string, Symbols>& objects() {
  static const auto& found = *new std::map<std::string, Symbols>([] {
    std::map<std::string, Symbols> all;
    for (const char* const name : kTargets) {
      const fs::path target = kObjects / name;
      if (!fs::exists(target)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(target)) {
        if (entry.path().extension() != ".o") continue;
        const fs::path origin = origin_of(entry.path(), target);
        if (fs::exists(kRoot / "framework/tenon" / origin))
          all.emplace(origin.generic_string(), symbols_of(entry.path(), ""));
      }
    }
    return all;
  }());
  return found;
}

std::string layer_of_source(const std::string& source) { return source.substr(0, source.find('/')); }

/// Symbol -> layer that defines it.
const std::map<std::string, std::string>& owners() {
  static const auto& found = *new std::map<std::string, std::string>([] {
    std::map<std::string, std::string> all;
    for (const auto& [source, symbols] : objects())
      for (const std::string& name : symbols.defined) all.emplace(name, layer_of_source(source));
    return all;
  }());
  return found;
}

/// As in libtorch, the methods of Tensor are declared with the class and are operators: who has a tensor may call them.
bool is_method_of_tensor(const std::string& name) {
  const std::string text = demangled(name);
  return text.find("tenon::Tensor::") < text.find('(');
}

TEST(SymbolRule, AnObjectNeedsNothingOfALayerAboveIt) {
  if (objects().empty()) GTEST_SKIP() << "no objects of libtenon below " << kObjects;
  std::size_t checked = 0;
  for (const auto& [source, symbols] : objects()) {
    const std::string layer = layer_of_source(source);
    for (const std::string& name : symbols.needed) {
      const auto owner = owners().find(name);
      if (owner == owners().end()) continue;
      ++checked;
      if (may_see(layer, owner->second)) continue;
      if (owner->second == "ops" && rank_of(layer) <= rank_of("tensor") && is_method_of_tensor(name)) continue;
      ADD_FAILURE() << source << " needs " << demangled(name) << " of " << owner->second;
    }
  }
  EXPECT_GT(checked, 2000U) << "the test no longer finds the symbols";
}

/// What a plugin takes from libtenon, by layer.
void expect_layers(const fs::path& plugin, const Layers& allowed) {
  std::size_t checked = 0;
  for (const std::string& name : symbols_of(plugin, "-D").needed) {
    const auto owner = owners().find(name);
    if (owner == owners().end()) continue;
    EXPECT_TRUE(allowed.contains(owner->second))
        << plugin.filename() << " needs " << demangled(name) << " of " << owner->second;
    ++checked;
  }
  EXPECT_GT(checked, 0U) << plugin << " takes nothing from libtenon";
}

/// The plugins of this build that a folder of the tree makes: by a folder or a source of their name.
std::vector<fs::path> plugins_of(const std::string& folder) {
  std::vector<fs::path> found;
  if (objects().empty() || !fs::exists(TENON_PLUGIN_DIR)) return found;
  for (const auto& entry : fs::directory_iterator(TENON_PLUGIN_DIR)) {
    const fs::path source = kRoot / folder / entry.path().stem();
    if (fs::exists(source) || fs::exists(source.string() + ".cpp")) found.push_back(entry.path());
  }
  return found;
}

TEST(SymbolRule, AnAllocatorTakesNothingFromDevicesKernelsOrTensors) {
  const auto plugins = plugins_of("allocators");
  if (plugins.empty()) GTEST_SKIP() << "no allocators in " << TENON_PLUGIN_DIR;
  for (const fs::path& plugin : plugins) expect_layers(plugin, kSeenByAllocators);
}

TEST(SymbolRule, ABackendTakesNothingFromAboveTheBoundary) {
  const auto plugins = plugins_of("plugins");
  if (plugins.empty()) GTEST_SKIP() << "no backends in " << TENON_PLUGIN_DIR;
  for (const fs::path& plugin : plugins) expect_layers(plugin, kBelowTheBoundary);
}

}  // namespace
}  // namespace tenon::test
