// Where a result came from: the environment block of every JSON output.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <string>

namespace tenon {

struct Environment {
  std::string host;
  std::string system;  ///< "Linux 6.1.0 x86_64"
  std::string cpu;     ///< the model's name
  int cores = 0;       ///< that this process may use
  std::size_t memory_bytes = 0;
  std::string compiler;  ///< "GCC 12.2.0"
  std::string build_type;
  std::string version;  ///< of Tenon
};

TENON_API const Environment& environment();

/// The block as a JSON object, with the plugins that are loaded by now (name, version, path, sha256).
TENON_API std::string environment_json();

}  // namespace tenon
