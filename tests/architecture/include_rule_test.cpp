// The include rule: an include may only point down.
#include "architecture/includes.h"
#include "architecture/layers.h"
#include "architecture/source_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <vector>

namespace tenon::test {
namespace {

/// Libraries that one layer keeps to itself. Boost is a family of libraries: Boost.DLL loads plugins, Boost.CRC is part
/// of a file format, Boost.Locale decodes UTF-8.
const std::map<std::string, Layers> kLibraryOwners = {
    {"toml++", {"runtime"}},
    {"boost/dll", {"runtime"}},
    {"boost/crc.hpp", {"tensorboard"}},
    {"boost/locale/utf.hpp", {"data"}},
    {"boost/math", {"measure"}},
    {"gelf.h", {"runtime"}},
    {"libelf.h", {"runtime"}},
    {"openssl", {"runtime"}},
    {"CLI", {"cli"}},
    {"curses.h", {"cli"}},
    {"prometheus", {"cli"}},
    {"png.h", {"tensorboard"}},
    {"protozero", {"tensorboard"}},
    {"utf8proc.h", {"report"}},
};

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
          EXPECT_TRUE(may_see(layer, other)) << shown(file) << " includes <" << include << ">";
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

/// Every file that the includes of `first` lead to, with the include that led there.
std::map<std::filesystem::path, std::filesystem::path> reached_from(const std::filesystem::path& first) {
  std::map<std::filesystem::path, std::filesystem::path> via;
  std::vector<std::filesystem::path> next = {first};
  while (!next.empty()) {
    const std::filesystem::path file = next.back();
    next.pop_back();
    for (const auto& include : includes_of(file)) {
      auto found = kRoot / "framework" / include;
      if (!std::filesystem::exists(found)) found = file.parent_path() / include;
      if (std::filesystem::exists(found) && via.emplace(found.lexically_normal(), file).second) next.push_back(found);
    }
  }
  return via;
}

TEST(IncludeRule, AnAllocatorSeesCoreMemoryAndPluginOnlyThroughWhateverItIncludes) {
  for (const auto& file : sources_below("allocators")) {
    for (const auto& include : includes_of(file)) {
      EXPECT_THAT(include, testing::Not(testing::StartsWith("cu"))) << shown(file);
    }
    for (const auto& [reached, via] : reached_from(file)) {
      const std::string path = shown(reached);
      if (!path.starts_with("framework/")) continue;
      EXPECT_TRUE(kSeenByAllocators.contains(layer_of_include(path.substr(10))))
          << shown(file) << " comes to " << path << " through " << shown(via);
    }
  }
}

TEST(IncludeRule, TheHeaderOfPluginAuthorsBringsNoDevices) {
  const auto reached = reached_from(kRoot / "framework/tenon/plugin/plugin.h");
  EXPECT_GT(reached.size(), 5U);
  for (const auto& [file, via] : reached) {
    const std::string layer = layer_of_include(shown(file).substr(10));
    EXPECT_TRUE(kSeenByAllocators.contains(layer)) << shown(file) << " through " << shown(via);
  }
}

TEST(IncludeRule, OnlyCompatDefinesTheMacrosOfLibtorch) {
  const std::regex macro(R"(#[ \t]*define[ \t]+(TORCH|AT|C10)_)");
  for (const auto& root : {"framework", "plugins", "allocators"}) {
    for (const auto& file : sources_below(root)) {
      const std::string text = read_text(file);
      EXPECT_FALSE(std::regex_search(text, macro)) << shown(file);
    }
  }
}

TEST(IncludeRule, ALibraryStaysWithItsLayer) {
  for (const auto& root : {"framework", "plugins", "allocators"}) {
    for (const auto& file : sources_below(root)) {
      for (const auto& include : includes_of(file)) {
        const auto owner = std::find_if(kLibraryOwners.begin(), kLibraryOwners.end(), [&](const auto& library) {
          return include == library.first || include.starts_with(library.first + "/");
        });
        if (owner == kLibraryOwners.end()) {
          EXPECT_FALSE(include.starts_with("boost/")) << shown(file) << " includes <" << include << ">";
          continue;
        }
        const bool is_owner = std::any_of(owner->second.begin(), owner->second.end(), [&](const std::string& layer) {
          return shown(file).starts_with("framework/tenon/" + layer + "/");
        });
        EXPECT_TRUE(is_owner) << shown(file) << " includes <" << include << ">";
      }
    }
  }
}

TEST(IncludeRule, NoVerbSeesTheParserOfCommandLinesWhichTakesLongerToCompile) {
  for (const auto& file : sources_below("framework/tenon/cli")) {
    const std::string name = file.filename();
    if (name == "verb.cpp" || name == "verb_facts.cpp") continue;
    EXPECT_THAT(includes_of(file), testing::Not(testing::Contains(testing::StartsWith("CLI/")))) << shown(file);
  }
}

TEST(IncludeRule, HeadersThatUsersIncludeNeedNoLibraryOfOurs) {
  for (const auto& file : files_below("framework/tenon", {".h"})) {
    if (shown(file).starts_with("framework/tenon/cli/")) continue;  // not installed
    for (const auto& include : includes_of(file)) {
      for (const auto& library : {"fmt/", "spdlog/", "nlohmann/", "toml++/", "boost/", "CLI/", "cblas", "dnnl",
                                  "openssl/", "gelf", "libelf", "utf8proc"}) {
        EXPECT_FALSE(include.starts_with(library)) << shown(file) << " includes <" << include << ">";
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
