// The include rule inside a layer: its rooms stand on each other as its layers do.
#include "architecture/includes.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

/// A room is a folder of a layer ("shape", "formats/pytorch"), a file of it without its ending ("log.*",
/// "libtorch/types.*"), or "." for the files on top that are not named. A file may include what stands in its own group
/// or below it.
using Group = std::set<std::string>;

// Top first.
const std::map<std::string, std::vector<Group>> kRooms = {
    {"cli",
     {{"verbs"},
      {"run"},
      {"estimate", "launch"},
      {"record"},
      {"results"},
      {"watch", "live"},
      {"."},
      {"manual", "verb.*"},
      {"process", "terminal"}}},
    {"train", {{"models"}, {".", "config", "estimate", "input", "parallel", "resume", "serve", "step"}}},
    {"report", {{"measure"}, {"replay", "run"}, {"."}, {"text"}}},
    {"measure", {{"compare"}, {"bench"}, {"statistics"}}},
    {"replay",
     {{"advise"},
      {"jobs"},
      {"planning"},
      {"results"},
      {"engine"},
      {"recording"},
      {"formats/tenon", "formats/pytorch"},
      {"formats/pytorch/pickle"},
      {"formats"},
      {"formats/image"},
      {"formats/io"},
      {"trace"}}},
    // The front end's functions and modules share their options: a module is its function with parameters.
    {"nn",
     {{"nn.*", "functional.*", "parallel.*", "pipeline.*", "lora.*"},
      {"quantization", "distributed"},
      {"modules/sequence"},
      {"modules", "functional"},
      {".", "containers", "serialize"},
      {"options"}}},
    {"optim", {{"."}, {"support"}}},
    // The kit runs the checks, and the checks take the kit's options; it words findings, which are its own, and its
    // processes answer with them.
    {"conformance", {{"checks", ".", "findings", "process"}}},
    {"data", {{"."}, {"detail"}}},
    {"runtime",
     {{"process_group.*"},
      {"config"},
      {"environment.*", "device_setup.*", "allocator_spec.*", "conf_policy.*"},
      {"plugins"},
      {"log.*", "run_status.*"}}},
    {"ops",
     {{"."},
      {"quantized"},
      {"nn", "nn/recurrent"},
      {"linalg"},
      {"indexing"},
      {"reduce"},
      {"pointwise"},
      {"shape"},
      {"create"},
      {"support", "autocast", "scope"}}},
    {"autograd", {{"leaks"}, {"."}}},
    {"tensor", {{"libtorch", "shape/indexing.*"}, {".", "methods"}, {"shape"}, {"libtorch/types.*"}}},
    {"device", {{"order"}, {"."}}},
    {"kernel", {{"."}, {"attributes"}, {"rows"}}},
    // A scope of a private pool is asked for by every allocation of a stack, and a pool belongs to a stack.
    {"memory",
     {{"watch"},
      {"stack", "pool.*"},
      {"layers"},
      {"sources"},
      {"history"},
      {"concurrent"},
      {"packing"},
      {".", "pytorch"}}},
    {"core", {{"files"}, {"process"}, {"scope"}, {".", "text"}}},
};

/// "shape/view.h" -> the room of the layer that it stands in; empty where the table has none.
std::string room_of(const std::vector<Group>& groups, const std::string& file) {
  const auto named = [&](const std::string& room) {
    for (const Group& group : groups)
      if (group.contains(room)) return true;
    return false;
  };
  if (const std::string itself = file.substr(0, file.rfind('.')) + ".*"; named(itself)) return itself;
  const auto slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  return named(folder) ? folder : "";
}

int height_of(const std::vector<Group>& groups, const std::string& room) {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].contains(room)) return static_cast<int>(groups.size() - i);
  return 0;
}

TEST(RoomRule, EveryFolderInsideALayerIsARoomOfTheTable) {
  const auto framework = kRoot / "framework/tenon";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(framework)) {
    if (!entry.is_directory()) continue;
    const std::string path = std::filesystem::relative(entry.path(), framework).generic_string();
    const auto slash = path.find('/');
    if (slash == std::string::npos) continue;
    const auto layer = kRooms.find(path.substr(0, slash));
    ASSERT_NE(layer, kRooms.end()) << "the layer " << path.substr(0, slash)
                                   << " has folders, but no rooms in the table";
    EXPECT_GT(height_of(layer->second, path.substr(slash + 1)), 0) << path << " has no place in the table";
  }
}

TEST(RoomRule, TheMapNamesEveryRoom) {
  const std::string map = read_text(kRoot / "framework/README.md");
  for (const auto& [layer, groups] : kRooms) {
    for (const Group& group : groups) {
      for (const std::string& room : group) {
        const bool is_folder = room != "." && room.find('*') == std::string::npos;
        if (!is_folder) continue;
        const std::string name = layer + "/" + room;
        EXPECT_NE(map.find("`" + name + "`"), std::string::npos)
            << "framework/README.md does not say what is in " << name;
      }
    }
  }
}

TEST(RoomRule, AnIncludeInsideALayerPointsDown) {
  std::size_t checked = 0;
  for (const auto& [layer, groups] : kRooms) {
    const std::string folder = "framework/tenon/" + layer;
    for (const auto& path : files_below(folder, {".h", ".cpp", ".inl"})) {
      const std::string file = shown(path).substr(folder.size() + 1);
      const std::string room = room_of(groups, file);
      for (const auto& include : includes_of(path)) {
        if (layer_of_include(include) != layer) continue;
        const std::string other = room_of(groups, include.substr(layer.size() + 7));
        EXPECT_TRUE(height_of(groups, other) <= height_of(groups, room))
            << layer << "/" << file << " (" << room << ") includes <" << include << "> (" << other << ")";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 500U) << "the test no longer finds the sources";
}

}  // namespace
}  // namespace tenon::test
