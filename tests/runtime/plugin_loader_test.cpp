// Finding, loading and registering plugins.
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/sha256.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PluginLoader : public testing::Test {
 protected:
  void TearDown() override {
    set_plugin_search({});
    ::unsetenv("TENON_PLUGIN_PATH");
  }
};

TEST_F(PluginLoader, RecordsWhatItLoadedAndFromWhere) {
  const LoadedPlugin& plugin = load_plugin(fixture("tiny").string());
  EXPECT_EQ(plugin.name, "tiny");
  EXPECT_EQ(plugin.version, "0.3");
  EXPECT_EQ(plugin.path, std::filesystem::canonical(fixture("tiny")));
  EXPECT_EQ(plugin.sha256(), sha256_of_file(fixture("tiny")));
  EXPECT_THAT(plugin.allocators, ElementsAre("tiny"));
  EXPECT_THAT(allocator_names(), Contains("tiny"));
}

TEST_F(PluginLoader, LoadsAFileOnce) {
  const LoadedPlugin* first = &load_plugin(fixture("tiny").string());
  EXPECT_EQ(&load_plugin(fixture("tiny").string()), first);
  const Folder folder;
  std::filesystem::create_symlink(fixture("tiny"), folder.path() / "other_name.so");
  EXPECT_EQ(&load_plugin((folder.path() / "other_name.so").string()), first) << "through a link it is the same file";
}

TEST_F(PluginLoader, APathIsRelativeToTheGivenFolder) {
  EXPECT_EQ(load_plugin("./tiny.so", TENON_FIXTURE_DIR).name, "tiny");
  EXPECT_EQ(load_plugin("tiny.so", TENON_FIXTURE_DIR).name, "tiny");
  EXPECT_THAT(message_of<PluginError>([] { load_plugin("tiny.so", "/nowhere"); }),
              AllOf(HasSubstr("/nowhere/tiny.so"), HasSubstr("no such file")));
}

TEST_F(PluginLoader, SearchesTheConfiguredFoldersThenTheVariableThenBesideTheLibrary) {
  ::setenv("TENON_PLUGIN_PATH", "/from/variable:/and/another", 1);
  set_plugin_search({"/from/toml"});
  std::vector<std::string> order;
  for (const PluginFolder& folder : plugin_folders()) order.push_back(folder.path.string());
  EXPECT_THAT(order, ElementsAre("/from/toml", "/from/variable", "/and/another",
                                 (library_folder() / "tenon/plugins").string()));
}

TEST_F(PluginLoader, TheFirstFolderWins) {
  const Folder early, late;
  std::filesystem::copy_file(fixture("tiny"), early.path() / "thing.so");
  std::filesystem::copy_file(fixture("pair"), late.path() / "thing.so");
  set_plugin_search({early.path()});
  ::setenv("TENON_PLUGIN_PATH", late.path().c_str(), 1);
  EXPECT_EQ(find_plugin("thing"), early.path() / "thing.so");
  set_plugin_search({});
  EXPECT_EQ(find_plugin("thing"), late.path() / "thing.so");
}

TEST_F(PluginLoader, AFolderThatIsSearchedTwiceIsListedOnce) {
  const Folder folder;
  std::filesystem::copy_file(fixture("tiny"), folder.path() / "thing.so");
  set_plugin_search({folder.path(), folder.path() / "."});
  ::setenv("TENON_PLUGIN_PATH", folder.path().c_str(), 1);
  const auto all = discover_plugins();
  EXPECT_EQ(std::ranges::count(all, folder.path() / "thing.so", &DiscoveredPlugin::path), 1);
  EXPECT_TRUE(std::ranges::none_of(
      all, [&](const DiscoveredPlugin& plugin) { return plugin.path.filename() == "thing.so" && plugin.shadowed; }));
}

TEST_F(PluginLoader, AnUnknownNameListsWhereItLookedAndTheNearestThere) {
  set_plugin_search({TENON_FIXTURE_DIR});
  const std::string message = message_of<PluginError>([] { load_plugin("tinny"); });
  EXPECT_THAT(message, AllOf(HasSubstr("no plugin \"tinny\""), HasSubstr("Did you mean \"tiny\"?"),
                             HasSubstr("in this order"), HasSubstr(TENON_FIXTURE_DIR), HasSubstr("(plugins.search)"),
                             HasSubstr("(beside libtenon)"), HasSubstr("TENON_PLUGIN_PATH")));
}

TEST_F(PluginLoader, AnUndefinedSymbolIsNamedWithWhatToDo) {
  EXPECT_THAT(message_of<PluginError>([] { load_plugin(fixture("undefined").string()); }),
              AllOf(HasSubstr("undefined.so"), HasSubstr("undefined symbol"), HasSubstr("function_that_is_nowhere"),
                    HasSubstr("link error"), Not(HasSubstr("boost")), Not(HasSubstr("Bad file descriptor"))));
}

TEST_F(PluginLoader, ARegistrationThatFailsLeavesNothingBehind) {
  EXPECT_THAT(message_of<PluginError>([] { load_plugin(fixture("throws").string()); }),
              HasSubstr("the licence server is down"));
  EXPECT_THAT(allocator_names(), Not(Contains("half")));
  load_plugin(fixture("tiny").string());
  EXPECT_THAT(message_of<PluginError>([] { load_plugin(fixture("taken").string()); }),
              AllOf(HasSubstr("taken.so"), HasSubstr("allocator 'tiny' is already supplied by plugin 'tiny'"),
                    HasSubstr("tiny.so")));
  EXPECT_THAT(allocator_names(), Not(Contains("fresh")));
}

TEST_F(PluginLoader, WhatAPluginAddsLaterThanInItsRegisterFunctionIsRefused) {
  for (const std::string what : {"allocator", "backend", "communicator"}) {
    const StackConfig config = allocator_from_spec(fixture("late").string() + ":adds=" + what);
    EXPECT_THAT(message_of<PluginError>([&] { AllocatorStack::make(find_backend("cpu").device(0).memory(), config); }),
                AllOf(HasSubstr("late.so"), HasSubstr(what + "s are added by its register function only")));
  }
}

TEST_F(PluginLoader, AnAllocatorIsFoundByNameByPathOrInAnyPluginOfTheFolders) {
  EXPECT_EQ(find_allocator(fixture("tiny").string()).name, "tiny");
  EXPECT_EQ(find_allocator("tiny").name, "tiny");
  EXPECT_EQ(find_allocator("direct").name, "direct") << "shipped";
  const Folder folder;
  std::filesystem::create_symlink(fixture("pair"), folder.path() / "pair.so");
  set_plugin_search({folder.path()});
  EXPECT_EQ(find_allocator("right").name, "right") << "supplied by a plugin of another name";
}

TEST_F(PluginLoader, ABareNameMeansTheShippedAllocatorThoughAFileOfThatNameWasAskedForFirst) {
  const Folder folder;
  std::filesystem::copy_file(find_plugin("cub_bins"), folder.path() / "cub_bins.so");
  const AllocatorInfo& own = find_allocator((folder.path() / "cub_bins.so").string());
  const AllocatorInfo& shipped = find_allocator("cub_bins");
  EXPECT_NE(&own, &shipped);
  EXPECT_EQ(&find_allocator((folder.path() / "cub_bins.so").string()), &own);
  EXPECT_EQ(&find_allocator("cub_bins"), &shipped);
}

TEST_F(PluginLoader, APathToSeveralAllocatorsAsksWhich) {
  EXPECT_THAT(message_of<ConfigError>([] { find_allocator(fixture("pair").string()); }),
              AllOf(HasSubstr("left, right"), HasSubstr("plugins.load")));
}

TEST_F(PluginLoader, AnUnknownAllocatorNamesTheNearest) {
  load_plugin("caching");
  EXPECT_THAT(message_of<ConfigError>([] { find_allocator("cachng"); }),
              HasSubstr("unknown allocator \"cachng\"; did you mean \"caching\"?"));
  EXPECT_THAT(message_of<ConfigError>([] { find_allocator("quite_something_else"); }),
              AllOf(HasSubstr("known: "), HasSubstr("beside libtenon")));
}

TEST_F(PluginLoader, APluginThatSuppliesAnotherKindIsNotSaidToBeMissing) {
  EXPECT_THAT(message_of<ConfigError>([] { find_allocator("simulated"); }),
              AllOf(HasSubstr("simulated.so supplies no allocator of that name"), Not(HasSubstr("No simulated.so"))));
}

TEST_F(PluginLoader, AnUnknownDeviceKindNamesTheNearest) {
  EXPECT_THAT(message_of<ConfigError>([] { find_backend("simulatd"); }), HasSubstr("did you mean \"simulated\"?"));
}

TEST_F(PluginLoader, ABrokenFileInAFolderDoesNotHideTheOthers) {
  const Folder folder;
  std::filesystem::copy_file(fixture("tiny"), folder.path() / "good.so");
  folder.write("bad.so", "words");
  set_plugin_search({folder.path()});
  const auto found = discover_plugins();
  ASSERT_GE(found.size(), 2U);
  EXPECT_THAT(found[0].problem, HasSubstr("not a shared library"));
  EXPECT_EQ(found[1].file.name, "tiny");
}

TEST_F(PluginLoader, ASpecSetsOptionsByTheirType) {
  const StackConfig config = allocator_from_spec(fixture("tiny").string() + ":chunk=64KiB,eager=true,fit=first");
  EXPECT_EQ(config.policy.name, "tiny");
  EXPECT_EQ(config.options.size("chunk"), 64 * KiB);
  EXPECT_TRUE(config.options.boolean("eager"));
  EXPECT_EQ(config.options.spec(), "chunk=64KiB,eager=true,fit=first");
  EXPECT_THAT(message_of<ConfigError>([] { allocator_from_spec("tiny:chunk=12 parsecs"); }), HasSubstr("parsecs"));
  EXPECT_THAT(message_of<ConfigError>([] { allocator_from_spec("tiny:chnk=1KiB"); }),
              HasSubstr("did you mean 'chunk'?"));
  EXPECT_THAT(message_of<ConfigError>([] { allocator_from_spec("tiny:chunk"); }), HasSubstr("NAME=VALUE"));
}

}  // namespace
}  // namespace tenon::test
