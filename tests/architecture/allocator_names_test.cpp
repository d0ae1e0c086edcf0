// What anybody wants to know of an allocator it says itself (AllocatorTraits): no code of the framework knows one by
// name.
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

namespace tenon::test {
namespace {

/// Names that stand somewhere as data, by path, with the reason.
const std::map<std::string, std::set<std::string>>& known_places() {
  static const auto* places = new std::map<std::string, std::set<std::string>>{
      // What PyTorch's settings select, and what a file that was recorded under them says.
      {"framework/tenon/memory/pytorch/conf.h", {"caching", "expandable"}},
      // An experiment for a user to start from.
      {"framework/tenon/cli/new_templates.h", {"caching"}}};
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
      const auto place = known_places().find(shown(file));
      if (place != known_places().end() && place->second.contains(name)) continue;
      for (const char quote : {'"', '\''}) {
        EXPECT_EQ(code.find(quote + name + quote), std::string::npos)
            << shown(file) << " names '" << name << "': let allocators say what they are capable of (memory/factory.h)";
      }
    }
  }
}

/// A name may be shown or handed on; what is decided by it, a trait says.
TEST(AllocatorNames, NothingIsDecidedByTheirConstants) {
  const std::regex comment("//[^\n]*");
  const std::regex compared(
      R"([=!]=\s*(\w+::)*k(Native|Expandable|Default)Allocator\b|\bk(Native|Expandable|Default)Allocator\s*[=!]=)");
  for (const char* decides :
       {"name == kNativeAllocator", "kExpandableAllocator != name", "x == tenon::kDefaultAllocator"})
    EXPECT_TRUE(std::regex_search(decides, compared)) << decides;
  std::size_t uses = 0;
  for (const auto& file : sources_below("framework")) {
    const std::string code = std::regex_replace(read_text(file), comment, "");
    uses += code.find("kNativeAllocator") == std::string::npos ? 0 : 1;
    EXPECT_FALSE(std::regex_search(code, compared))
        << shown(file) << " compares with an allocator's name: let allocators say what they are capable of "
        << "(memory/factory.h)";
  }
  EXPECT_GE(uses, 2u) << "the test no longer finds the constants";
}

}  // namespace
}  // namespace tenon::test
