// What the figures of a run stand on besides its settings: the build of Tenon and the files of its plugins.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct UsedPlugin {
  std::string name;
  std::string version;
  std::filesystem::path path;
  std::string sha256;  ///< of the file when it was loaded
};

struct RunBasis {
  std::string version;  ///< of Tenon
  std::string build;    ///< of libtenon: see library_build()
  std::vector<UsedPlugin> plugins;
};

/// Of one run: the plugins of its device, its allocator and those that the layer `route` sends to, and those that are
/// loaded for their kernels.
RunBasis basis_of(const ExperimentConfig& experiment);
/// Of a sweep whose configuration was read: all plugins that its cells may use.
RunBasis basis_of_loaded();

/// What is another than when a run began.
struct BasisChange {
  std::vector<UsedPlugin> plugins;  ///< as they are now
  /// Tenon itself was built or installed anew. Its own plugins come with it, and are not listed then.
  bool is_tenon = false;
};
/// Nothing where it is not known what the run stood on.
BasisChange change_between(const std::optional<RunBasis>& then, const RunBasis& now);

}  // namespace tenon::cli
