// What documents say of the layers is what the tests of includes hold the tree against: the table of
// framework/README.md and the picture beside it.
#include "architecture/layers.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

std::set<std::string> all_layers() {
  std::set<std::string> layers;
  for (const Layers& rank : kRanks) layers.insert(rank.begin(), rank.end());
  return layers;
}

TEST(LayerTable, TheTreeHasTheseLayers) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "framework/tenon"))
    if (entry.is_directory()) folders.insert(entry.path().filename());
  EXPECT_EQ(folders, all_layers());
}

TEST(LayerTable, TheMapListsThemTopFirst) {
  const std::string text = read_text(kRoot / "framework/README.md");
  const std::size_t end = text.find("Below the boundary stand");
  ASSERT_NE(end, std::string::npos);
  std::vector<std::string> listed;
  for (const std::string& first_cell : matches(text.substr(0, end), R"(\n\| (`tenon/[^|]*) \|)")) {
    for (const std::string& layer : matches(first_cell, R"(`(?:tenon/)?([a-z]+)`)")) listed.push_back(layer);
  }
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), all_layers());
  EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end(),
                             [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); }));
}

/// Names in the picture's boxes, with where the text begins.
std::vector<std::pair<std::string, std::pair<int, int>>> boxes_of_picture() {
  const std::string text = read_text(kRoot / "framework/architecture.svg");
  const std::regex title(R"re(<text class="t" x="(\d+)" y="(\d+)">([^<]*)</text>)re");
  std::vector<std::pair<std::string, std::pair<int, int>>> boxes;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), title); it != std::sregex_iterator(); ++it) {
    for (const std::string& name : matches((*it)[3], "([A-Za-z]+)"))
      boxes.push_back({name, {std::stoi((*it)[2]), std::stoi((*it)[1])}});
  }
  return boxes;
}

TEST(LayerTable, AnIncludeOfThePictureOnlyPointsDownOrToTheRight) {
  std::map<std::string, std::pair<int, int>> places;
  for (const auto& [name, place] : boxes_of_picture())
    if (rank_of(name) >= 0) places.emplace(name, place);
  std::set<std::string> drawn;
  for (const auto& [layer, place] : places) drawn.insert(layer);
  EXPECT_EQ(drawn, all_layers());
  for (const auto& [upper, place] : places) {
    for (const auto& [lower, other] : places) {
      if (rank_of(upper) >= rank_of(lower)) continue;
      EXPECT_LT(place, other) << upper << " does not stand before " << lower;
    }
  }
}

TEST(LayerTable, ThePictureNamesThePluginsThatThereAre) {
  const std::string picture = read_text(kRoot / "framework/architecture.svg");
  std::set<std::string> named;
  for (const std::string& line : matches(picture, R"(>([a-z_]+(?: · [a-z_]+)+)<)")) {
    for (const std::string& name : matches(line, "([a-z_]+)")) named.insert(name);
  }
  std::set<std::string> there;
  for (const auto& folder : {"plugins", "allocators"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder))
      if (exists(entry.path() / "plugin.cpp") || entry.path().extension() == ".cpp") there.insert(entry.path().stem());
  }
  EXPECT_EQ(named, there);
}

}  // namespace
}  // namespace tenon::test
