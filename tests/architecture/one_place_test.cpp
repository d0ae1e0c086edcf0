// One place for each addition: what `framework/README.md` promises of verbs, layers and formats. A name stands in its
// own files and in one list of CMake's, and nowhere else in the framework.
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

namespace tenon::test {
namespace {

/// The words behind `set(NAME ` in a list of CMake's.
std::set<std::string> words_of_set(const std::string& file, const std::string& name) {
  const std::string text = read_text(kRoot / file);
  std::smatch found;
  std::set<std::string> words;
  if (!std::regex_search(text, found, std::regex("set\\(" + name + R"( ([a-z0-9_\s]+)\))"))) return words;
  const std::string list = found[1];
  const std::regex word("[a-z0-9_]+");
  for (auto it = std::sregex_iterator(list.begin(), list.end(), word); it != std::sregex_iterator(); ++it)
    words.insert(it->str());
  return words;
}

/// The framework's files that name this function.
std::set<std::string> files_with(const std::string& function) {
  const std::regex call("\\b" + function + "\\(");
  std::set<std::string> files;
  for (const auto& file : sources_below("framework")) {
    const std::string text = read_text(file);
    if (text.find(function + "(") != std::string::npos && std::regex_search(text, call)) files.insert(shown(file));
  }
  return files;
}

std::set<std::string> stems_below(const std::string& folder) {
  std::set<std::string> stems;
  for (const auto& file : files_below(folder, {".cpp"})) stems.insert(file.stem());
  return stems;
}

TEST(OnePlace, AVerbIsAFileAndALineOfCMakes) {
  const std::string folder = "framework/tenon/cli/verbs";
  const std::set<std::string> verbs = words_of_set("framework/tenon/cli/CMakeLists.txt", "verbs");
  EXPECT_GE(verbs.size(), 10u);
  EXPECT_EQ(verbs, stems_below(folder)) << "every file there is a verb";
  for (const std::string& verb : verbs) {
    const std::set<std::string> own = {folder + "/" + verb + ".cpp"};
    EXPECT_EQ(files_with("add_" + verb), own);
  }
}

TEST(OnePlace, ALayerIsAFileAndALineOfCMakes) {
  const std::set<std::string> layers = words_of_set("framework/tenon/memory/CMakeLists.txt", "layers");
  EXPECT_GE(layers.size(), 10u);
  for (const std::string& layer : layers) {
    const std::set<std::string> own = {"framework/tenon/memory/layers/" + layer + ".cpp"};
    EXPECT_EQ(files_with(layer + "_layer"), own);
  }
}

// Further tests hold the table itself against the formats and their fuzz targets: tests/replay/formats_test.cpp,
// tests/fuzz/corpus_test.cpp.
TEST(OnePlace, AFormatIsItsFilesAndALineOfCMakes) {
  const std::string text = read_text(kRoot / "framework/tenon/replay/formats/formats.cmake");
  const std::regex line(R"(tenon_format\(([a-z0-9_]+)\s+([^)]*)\))");
  std::size_t formats = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[1], sources = (*it)[2];
    const std::set<std::string> holders = files_with(name + "_format");
    EXPECT_EQ(holders.size(), 1u) << name << "_format() stands in more files than its own";
    for (const std::string& holder : holders) {
      const std::string file = holder.substr(std::string("framework/tenon/replay/formats/").size());
      EXPECT_NE(sources.find(file), std::string::npos) << holder;
    }
    ++formats;
  }
  EXPECT_GE(formats, 7u);
}

}  // namespace
}  // namespace tenon::test
