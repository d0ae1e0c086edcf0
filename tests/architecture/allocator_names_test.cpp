// What anybody wants to know of an allocator it says itself (AllocatorTraits): no code of the framework knows one by
// name.
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

namespace tenon::test {
namespace {

/// Names that stand somewhere as data, with the reason.
const std::map<std::string, std::set<std::string>>& known_places() {
  static const auto* places = new std::map<std::string, std::set<std::string>>{
      // What PyTorch's settings select, and what a file that was recorded under them says.
      {"pytorch_conf.h", {"caching", "expandable"}},
      // The allocator of whoever chooses none.
      {"allocator_spec.h", {"caching"}},
      // An experiment for a user to start from.
      {"new_templates.h", {"caching"}}};
  return *places;
}

/// Folders and files of allocators/.
std::vector<std::string> allocator_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "allocators")) {
    if (entry.is_directory() || entry.path().extension() == ".cpp") names.push_back(entry.path().stem().string());
  }
  return names;
}

TEST(AllocatorNames, TheFrameworkKnowsNoAllocatorByItsName) {
  const std::vector<std::string> names = allocator_names();
  EXPECT_GE(names.size(), 3u) << "the test no longer finds the allocators";
  const std::regex comment("//[^\n]*");
  for (const auto& file : sources_below("framework")) {
    const std::string code = std::regex_replace(read_text(file), comment, "");
    for (const std::string& name : names) {
      const auto place = known_places().find(file.filename().string());
      if (place != known_places().end() && place->second.contains(name)) continue;
      for (const char quote : {'"', '\''}) {
        EXPECT_EQ(code.find(quote + name + quote), std::string::npos)
            << shown(file) << " names '" << name << "': let allocators say what they are capable of (memory/factory.h)";
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
