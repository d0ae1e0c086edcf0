// The table of additions in framework/README.md, its rows of names: what an experiment's file can name stands in one
// table each, a check of the kit has its turn, a module is there for whoever includes nn, a method is found where its
// operator is. The other rows: one_place_test.cpp.
#include "architecture/layers.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

const std::string kFramework = "framework/tenon/";

std::string text_of(const std::string& file) { return read_text(kRoot / (kFramework + file)); }

/// A table of names that an experiment's file may use, and how its rows begin.
struct NameTable {
  std::string file;
  std::string row;
};

const std::vector<NameTable> kNameTables = {
    {"train/input/data_set.cpp", R"re(\.name = "([a-z0-9-]+)")re"},
    {"train/model.cpp", R"re(\{"([a-z0-9-]+)",\s*make_)re"},
    {"train/optimizers.cpp", R"re(\n    \{"([a-z0-9_]+)",)re"},
    {"train/schedules.cpp", R"re(\n    \{"([a-z0-9_]+)",)re"},
};

/// Where such a word stands for something else, or as data.
const std::map<std::string, std::set<std::string>>& other_places() {
  static const auto* places = new std::map<std::string, std::set<std::string>>{
      {"sections.cpp", {"adamw"}},       // the optimiser of a file that names none
      {"model.cpp", {"text"}},           // what a model of language reads
      {"llama_layers.cpp", {"cosine"}},  // a table of its rotations
      {"recordings.h", {"text"}},        // a recording of that form
  };
  return *places;
}

TEST(TableOfAdditions, WhatAFileCanNameIsARowOfOneTable) {
  const std::regex comment("//[^\n]*");
  for (const NameTable& table : kNameTables) {
    const std::vector<std::string> names = matches(text_of(table.file), table.row);
    EXPECT_GE(names.size(), 2u) << "the test no longer finds the rows of " << table.file;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << table.file;
    std::vector<std::filesystem::path> files = {kRoot / (kFramework + "cli/health.cpp")};
    for (const char* layer : {"train", "data", "optim", "runtime"}) {
      for (const auto& file : sources_below(kFramework + layer)) files.push_back(file);
    }
    for (const auto& file : files) {
      if (shown(file) == kFramework + table.file) continue;
      const std::string text = std::regex_replace(read_text(file), comment, "");
      const auto place = other_places().find(file.filename().string());
      for (const std::string& name : names) {
        if (place != other_places().end() && place->second.contains(name)) continue;
        EXPECT_EQ(text.find('"' + name + '"'), std::string::npos)
            << shown(file) << " names \"" << name << "\", which is a row of " << table.file;
      }
    }
  }
}

TEST(TableOfAdditions, AModelIsAFileARowAndADeclaration) {
  const std::string declarations = text_of("train/model.h"), sources = text_of("train/CMakeLists.txt");
  std::string models;
  for (const auto& file : sources_below(kFramework + "train/models")) {
    models += read_text(file);
    if (file.extension() != ".cpp") continue;
    EXPECT_NE(sources.find("models/" + file.filename().string()), std::string::npos) << shown(file) << " is not built";
  }
  const std::vector<std::string> makers = matches(text_of("train/model.cpp"), R"re(,\s*(make_\w+),)re");
  EXPECT_GE(makers.size(), 8u) << "the test no longer finds the models";
  for (const std::string& maker : makers) {
    EXPECT_NE(declarations.find("Model " + maker + "("), std::string::npos) << maker << " is not declared in model.h";
    EXPECT_NE(models.find("Model " + maker + "("), std::string::npos) << maker << " is in no file of train/models";
  }
}

TEST(TableOfAdditions, ACheckOfTheKitIsARowAndHasItsTurn) {
  std::vector<std::string> checks;
  for (const auto& file : files_below(kFramework + "conformance/checks", {".cpp"})) {
    const std::string text = read_text(file);
    const std::size_t table = text.find("constexpr Check kChecks[]");
    if (table == std::string::npos) continue;
    for (const std::string& name : matches(text.substr(table), R"re(\{"([a-z_]+)", ")re")) checks.push_back(name);
  }
  const std::string kit = text_of("conformance/conformance.cpp");
  const std::size_t begin = kit.find("kOrder[] = {");
  ASSERT_NE(begin, std::string::npos);
  const std::vector<std::string> order =
      matches(kit.substr(begin, kit.find("};", begin) - begin), R"re("([a-z_]+)")re");
  EXPECT_GE(checks.size(), 20u) << "the test no longer finds the checks";
  EXPECT_EQ(checks.size(), order.size());
  EXPECT_EQ(std::set<std::string>(checks.begin(), checks.end()), std::set<std::string>(order.begin(), order.end()));
}

TEST(TableOfAdditions, AWorkloadOfTheBenchIsARowThatItsHeaderLists) {
  const std::string header = text_of("measure/bench/workload.h");
  const std::vector<std::string> forms =
      matches(text_of("measure/bench/patterns.cpp"), R"re(\n    \{"([a-z-]+)", "(?:SIZE|N)")re");
  EXPECT_GE(forms.size(), 5u) << "the test no longer finds the forms";
  for (const std::string& form : forms)
    EXPECT_NE(header.find("//   " + form + "/"), std::string::npos) << form << " is not in the list of workload.h";
}

TEST(TableOfAdditions, ARecordingIsARowWhoseFileNoOtherPlaceNames) {
  const std::string table = "runtime/config/recordings.h";
  const std::vector<std::string> files = matches(text_of(table), R"re(\.word = "[a-z]+", \.file = "([a-z.]+)")re");
  EXPECT_GE(files.size(), 5u) << "the test no longer finds the rows";
  for (const char* layer : {"cli", "runtime", "train"}) {
    for (const auto& source : sources_below(kFramework + layer)) {
      if (shown(source) == kFramework + table) continue;
      const std::string text = read_text(source);
      for (const std::string& file : files)
        EXPECT_EQ(text.find('"' + file + '"'), std::string::npos) << shown(source) << " names \"" << file << '"';
    }
  }
}

TEST(TableOfAdditions, AModuleIsThereForWhoeverIncludesNn) {
  const std::string all = text_of("nn/nn.h"), sources = text_of("nn/CMakeLists.txt");
  std::size_t modules = 0;
  for (const auto& file : files_below(kFramework + "nn/modules", {".h"})) {
    const std::string header = shown(file).substr(std::string("framework/").size());
    const std::string source = std::filesystem::path(header).replace_extension(".cpp").string().substr(9);
    EXPECT_NE(all.find("#include <" + header + ">"), std::string::npos) << header << " is not in nn.h";
    EXPECT_NE(sources.find("  " + source), std::string::npos) << source << " is not built";
    const std::string text = read_text(file);
    for (const std::string& name : matches(text, R"re(\nclass TENON_EXPORT (\w+)Impl\b)re")) {
      if (name.ends_with("Nd")) continue;  // a base of three
      ++modules;
      const std::regex holder("TENON_(LIBRARY_)?MODULE\\(" + name + "[,)]|ModuleHolder<" + name + "Impl>");
      EXPECT_TRUE(std::regex_search(text, holder)) << header << ": " << name << "Impl has no holder";
    }
  }
  EXPECT_GT(modules, 20u) << "the test no longer finds the modules";
}

/// What Tensor has of itself, in tensor.h: its memory, its form, one element.
const std::set<std::string> kOfTheTensor = {"item", "resize_", "set_", "view_dtype"};

TEST(TableOfAdditions, AMethodIsDeclaredInThePartOfItsOperatorsFamily) {
  std::size_t methods = 0;
  for (const char* family : {"create", "indexing", "linalg", "nn", "pointwise", "reduce", "shape"}) {
    const std::filesystem::path part = kRoot / (kFramework + "tensor/methods/" + family + ".inl");
    const std::string declared =
        read_text(part) + (std::string(family) == "reduce" ? text_of("tensor/reduction_rows.inl") : "");
    for (const auto& file : files_below(kFramework + "ops/" + family, {".cpp"})) {
      for (const std::string& name : matches(read_text(file), R"re(\n[^\n#/ ][^\n]*\bTensor::(\w+)\([^\n]*\{)re")) {
        if (kOfTheTensor.contains(name) || name == "operator") continue;
        ++methods;
        EXPECT_TRUE(std::regex_search(declared, std::regex("\\b" + name + "[(,]")))
            << shown(file) << " defines " << name << "(), which " << shown(part) << " does not declare";
      }
    }
  }
  EXPECT_GT(methods, 150u) << "the test no longer finds the methods";
}

std::string table_of_additions() {
  const std::string text = read_text(kRoot / "framework/README.md");
  const std::size_t begin = text.find("## Where do I add"), end = text.find("\n## ", begin + 1);
  return begin == std::string::npos ? "" : text.substr(begin, end - begin);
}

TEST(TableOfAdditions, NamesFilesThatExist) {
  std::size_t files = 0;
  for (const std::string& file : matches(table_of_additions(), R"re(`([a-z_]+/[a-z_/.]*)`)re")) {
    ++files;
    EXPECT_TRUE(std::filesystem::exists(kRoot / (kFramework + file)) || std::filesystem::exists(kRoot / file))
        << "the table names " << file;
  }
  EXPECT_GE(files, 15u) << "the test no longer finds the table";
}

TEST(TableOfAdditions, TheMapSaysWhichLayersSeeOneBesideThem) {
  const std::string text = read_text(kRoot / "framework/README.md");
  for (const auto& [layer, others] : kSideways) {
    for (const std::string& other : others) {
      EXPECT_NE(text.find("`" + layer + "` sees `" + other + "`"), std::string::npos)
          << "framework/README.md does not say that " << layer << " sees " << other;
    }
  }
}

}  // namespace
}  // namespace tenon::test
