// The include rule: an include may only point down. The table below is the one of the design, top layer first.
#include "architecture/source_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace tenon::test {
namespace {

using Layers = std::set<std::string>;

// Layers of one rank do not see each other, but for the pairs in kSideways.
const std::vector<Layers> kRanks = {
    {"cli"},
    {"report"},
    {"train"},
    {"replay", "conformance"},
    {"nn", "optim", "data", "amp", "parallel", "quantization", "checkpoint", "profiler"},
    {"runtime"},
    {"ops"},
    {"autograd"},
    {"tensor"},
    {"dispatch"},
    {"plugin"},
    {"device", "kernel"},
    {"memory"},
    {"core"},
};

// What stands on one rank and may still be seen, one way only: who -> whom.
const std::map<std::string, Layers> kSideways = {
    {"optim", {"nn"}},  // a module's parameters are optimised
    {"data", {"nn"}},   // samplers are saved in archives, options are spelled alike
};

const Layers kBelowTheBoundary = {"plugin", "device", "kernel", "memory", "core"};

/// Libraries that one layer keeps to itself.
const std::map<std::string, Layers> kLibraryOwners = {
    {"toml++", {"runtime"}},
    {"boost", {"runtime", "report"}},  // DLL there, CRC here
    {"CLI", {"cli"}},
};

int rank_of(const std::string& layer) {
  for (std::size_t i = 0; i < kRanks.size(); ++i) {
    if (kRanks[i].contains(layer)) return static_cast<int>(i);
  }
  return -1;
}

bool may_include(const std::string& layer, const std::string& other) {
  if (layer == other) return true;
  if (rank_of(other) > rank_of(layer)) return true;
  const auto sideways = kSideways.find(layer);
  return sideways != kSideways.end() && sideways->second.contains(other);
}

std::vector<std::string> includes_of(const std::filesystem::path& path) {
  static const std::regex line(R"(^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"])", std::regex::multiline);
  const std::string text = read_text(path);
  std::vector<std::string> includes;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it) {
    includes.push_back((*it)[1]);
  }
  return includes;
}

/// "tenon/memory/allocator.h" -> "memory"; empty for what is not ours, "tenon" for the umbrella header.
std::string layer_of_include(const std::string& include) {
  if (!include.starts_with("tenon/")) return "";
  const auto end = include.find('/', 6);
  return end == std::string::npos ? "tenon" : include.substr(6, end - 6);
}

TEST(IncludeRule, EveryFolderOfTheFrameworkIsALayerOfTheTable) {
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "framework/tenon")) {
    if (!entry.is_directory()) continue;
    EXPECT_GE(rank_of(entry.path().filename()), 0) << entry.path().filename();
  }
}

TEST(IncludeRule, AnIncludeOfTheFrameworkPointsDown) {
  std::size_t checked = 0;
  for (const auto& layers : kRanks) {
    for (const auto& layer : layers) {
      for (const auto& file : sources_below("framework/tenon/" + layer)) {
        for (const auto& include : includes_of(file)) {
          const std::string other = layer_of_include(include);
          if (other.empty()) continue;
          EXPECT_TRUE(may_include(layer, other)) << shown(file) << " includes <" << include << ">";
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 100u) << "the test no longer finds the sources";
}

TEST(IncludeRule, APluginSeesOnlyWhatIsBelowTheBoundary) {
  for (const auto& file : sources_below("plugins")) {
    for (const auto& include : includes_of(file)) {
      const std::string layer = layer_of_include(include);
      EXPECT_TRUE(layer.empty() || kBelowTheBoundary.contains(layer)) << shown(file) << " includes <" << include << ">";
    }
  }
}

TEST(IncludeRule, AnAllocatorSeesCoreMemoryAndPluginOnly) {
  const Layers allowed = {"core", "memory", "plugin"};
  for (const auto& file : sources_below("allocators")) {
    for (const auto& include : includes_of(file)) {
      const std::string layer = layer_of_include(include);
      EXPECT_TRUE(layer.empty() || allowed.contains(layer)) << shown(file) << " includes <" << include << ">";
      EXPECT_THAT(include, testing::Not(testing::StartsWith("cu"))) << shown(file);
    }
  }
}

TEST(IncludeRule, ALibraryStaysWithItsLayer) {
  for (const auto& root : {"framework", "plugins", "allocators"}) {
    for (const auto& file : sources_below(root)) {
      for (const auto& include : includes_of(file)) {
        const auto owner = kLibraryOwners.find(include.substr(0, include.find('/')));
        if (owner == kLibraryOwners.end()) continue;
        const bool is_owner = std::any_of(owner->second.begin(), owner->second.end(), [&](const std::string& layer) {
          return shown(file).starts_with("framework/tenon/" + layer + "/");
        });
        EXPECT_TRUE(is_owner) << shown(file) << " includes <" << include << ">";
      }
    }
  }
}

TEST(IncludeRule, HeadersThatUsersIncludeNeedNoLibraryOfOurs) {
  for (const auto& file : files_below("framework/tenon", {".h"})) {
    if (shown(file).starts_with("framework/tenon/cli/")) continue;  // not installed
    for (const auto& include : includes_of(file)) {
      for (const auto& library : {"fmt/", "spdlog/", "nlohmann/", "toml++/", "boost/", "CLI/", "cblas", "dnnl"}) {
        EXPECT_FALSE(include.starts_with(library)) << shown(file) << " includes <" << include << ">";
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
