// What a file name that leads nowhere may have meant.
#pragma once

#include <tenon/core/export.h>

#include <filesystem>
#include <string>

namespace tenon {

/// "; did you mean x.trace.gz?": the file of the same folder whose name is nearest, or begins with the given one.
/// "; there is no folder DIR" where that is what is missing. Empty when there is nothing to say, or the file is there.
TENON_API std::string nearest_file_hint(const std::filesystem::path& path);

}  // namespace tenon
