// One place for each addition: what `framework/README.md` promises of allocators, backends, verbs, layers, formats and
// operators. The name of a verb, layer or format stands in its own files and in one list of CMake's, and nowhere else
// in the framework.
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

TEST(OnePlace, AnAllocatorIsItsFilesAndALineOfCMakes) {
  std::set<std::string> allocators;
  for (const auto& file : files_below("allocators", {".cpp"})) {
    const std::string text = read_text(file);
    const std::regex declares(R"(\n(?:TENON_ALLOCATOR|TENON_PLUGIN)\(([a-z0-9_]+),)");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), declares); it != std::sregex_iterator(); ++it) {
      EXPECT_TRUE(allocators.insert((*it)[1]).second) << (*it)[1] << " is declared twice";
    }
  }
  EXPECT_GE(allocators.size(), 4u) << "the test no longer finds the allocators";
  std::set<std::string> built;
  for (const auto& file : files_below("allocators", {".txt"})) {
    const std::string text = read_text(file);
    const std::regex line(R"(tenon_add_allocator\(([a-z0-9_]+))");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it)
      built.insert((*it)[1]);
  }
  EXPECT_EQ(allocators, built);  // that no other file names one: AllocatorNames
}

/// Where a kind of device stands as data, with the reason.
const std::map<std::string, std::set<std::string>>& places_of_device_kinds() {
  static const auto* places = new std::map<std::string, std::set<std::string>>{
      // Constants for the names that libtorch has too; a kind needs none.
      {"device_kinds.inl", {"cpu", "cuda", "simulated", "meta"}},
      // What an experiment that names no device computes on.
      {"section_spec.cpp", {"cpu"}},
      // For messages about the host's memory.
      {"host_memory_source.h", {"cpu"}},
      // Where an estimate is made: addresses without memory, on any machine.
      {"address_run.h", {"simulated"}},
      // An experiment for a user to start from.
      {"new_templates.h", {"cpu"}},
      // A device of a PyTorch profiler's file.
      {"chrome_reader.cpp", {"cpu"}},
      // The processor, in the description of a machine.
      {"environment.cpp", {"cpu"}},
      {"result_set.cpp", {"cpu"}}};
  return *places;
}

TEST(OnePlace, ABackendIsAFolder) {
  std::set<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "plugins")) {
    if (!entry.is_directory()) continue;
    const bool is_backend = read_text(entry.path() / "CMakeLists.txt").find("tenon_ship_backend(") != std::string::npos;
    if (is_backend) kinds.insert(entry.path().filename());
  }
  EXPECT_GE(kinds.size(), 3u) << "the test no longer finds the backends";
  const std::regex comment("//[^\n]*");
  for (const auto& file : files_below("framework", {".h", ".cpp", ".inl"})) {
    const std::string code = std::regex_replace(read_text(file), comment, "");
    const auto place = places_of_device_kinds().find(file.filename().string());
    for (const std::string& kind : kinds) {
      if (place != places_of_device_kinds().end() && place->second.contains(kind)) continue;
      EXPECT_EQ(code.find('"' + kind + '"'), std::string::npos)
          << shown(file) << " names the device kind '" << kind << "': let backends say what they are capable of";
    }
  }
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

// Further tests hold the table itself against the formats and their fuzz targets:
// tests/replay/formats/formats_test.cpp, tests/fuzz/corpus_test.cpp.
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

// --- operators: a row is the only declaration that one has (that the forms follow from it, tests/ops shows)
// -----------

/// Third column of the rows of one kind: TENON_UNARY(Tanh, tanh, …) -> tanh.
std::set<std::string> names_in(const std::string& file, const std::string& kinds, int column) {
  const std::string text = read_text(kRoot / "framework/tenon" / file);
  const std::string before = column == 1 ? "" : R"([A-Za-z0-9]+,\s*)";
  const std::regex row("\n(" + kinds + R"()\()" + before + "([a-z0-9_]+),");
  std::set<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match) names.insert((*match)[2]);
  return names;
}

/// The headers' text with single spaces, so that a declaration is found however it is wrapped.
std::vector<std::pair<std::string, std::string>> declarations() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const char* layer : {"tensor", "ops"}) {
    for (const auto& file : files_below(std::string("framework/tenon/") + layer, {".h", ".inl"})) {
      result.emplace_back(shown(file), std::regex_replace(read_text(file), std::regex(R"(\s+)"), " "));
    }
  }
  return result;
}

void expect_nowhere(const std::vector<std::string>& declared) {
  for (const auto& [file, text] : declarations()) {
    for (const std::string& one : declared) {
      EXPECT_EQ(text.find(one), std::string::npos) << file << " declares " << one << " beside its row";
    }
  }
}

TEST(OnePlace, AUnaryOperatorIsDeclaredByItsRow) {
  const auto names = names_in("kernel/rows/unary.inl", "TENON_UNARY|TENON_UNARY_WITH", 2);
  ASSERT_GT(names.size(), 50u) << "the test no longer finds the rows";
  std::vector<std::string> declared;
  for (const std::string& name : names) {
    for (const char* end : {"(const Tensor& self);", "(const Tensor& self) {", "(const Tensor& self, const Scalar&",
                            "_(Tensor& self);", "_(Tensor& self) {", "_out(Tensor& out", "() const;"}) {
      declared.push_back(" " + name + end);
    }
  }
  expect_nowhere(declared);
}

TEST(OnePlace, ABinaryOperatorIsDeclaredByItsRow) {
  auto names = names_in("kernel/rows/binary.inl", "TENON_BINARY", 2);
  names.merge(names_in("kernel/rows/relations.inl", "TENON_COMPARISON|TENON_BITWISE", 2));
  ASSERT_GT(names.size(), 20u) << "the test no longer finds the rows";
  std::vector<std::string> declared;
  for (const std::string& name : names) {
    for (const char* end : {"(const Tensor& self, const Tensor& other);", "(const Tensor& self, const Scalar& other);",
                            "(const Tensor& other) const;", "_(const Tensor& other) const;", "_out(Tensor& out"}) {
      declared.push_back(" " + name + end);
    }
  }
  expect_nowhere(declared);
}

TEST(OnePlace, AReductionIsDeclaredByItsRow) {
  const auto names = names_in("tensor/reduction_rows.inl", "TENON_REDUCTION", 1);
  ASSERT_GT(names.size(), 10u) << "the test no longer finds the rows";
  std::vector<std::string> declared;
  for (const std::string& name : names) {
    declared.push_back("TENON_OUT(" + name + ",");
    declared.push_back(" " + name + "_out(Tensor& out");
  }
  expect_nowhere(declared);
}

TEST(OnePlace, WhatAnOutFormAsksForStandsAtTheOperator) {
  std::set<std::string> names = names_in("kernel/rows/unary.inl", "TENON_UNARY|TENON_UNARY_WITH", 2);
  names.merge(names_in("kernel/rows/relations.inl", "TENON_COMPARISON|TENON_PREDICATE|TENON_BITWISE", 2));
  names.merge(names_in("tensor/reduction_rows.inl", "TENON_REDUCTION", 1));
  names.merge(names_in("ops/out.h", "TENON_OUT", 1));
  ASSERT_GT(names.size(), 100u) << "the test no longer finds the operators";
  for (const char* file : {"out_argument.h", "out_argument.cpp"}) {
    const std::string text = read_text(kRoot / "framework/tenon/ops/support" / file);
    for (const std::string& name : names) {
      EXPECT_EQ(text.find('"' + name + '"'), std::string::npos)
          << file << " knows the operator " << name << ": let its row or its TENON_OUT name one of out_rules";
    }
  }
}

TEST(OnePlace, TheKernelsOfRowsAreNamedByNoBackend) {
  std::set<std::string> names = names_in("kernel/rows/unary.inl", R"(TENON_UNARY\w*)", 2);
  names.merge(names_in("kernel/rows/relations.inl", R"(TENON_\w+)", 2));
  for (const auto& file : sources_below("plugins")) {
    const std::string text = read_text(file);
    for (const std::string& name : names) {
      EXPECT_EQ(text.find("sink.host, \"" + name + "\""), std::string::npos) << shown(file) << " names " << name;
    }
  }
}

}  // namespace
}  // namespace tenon::test
