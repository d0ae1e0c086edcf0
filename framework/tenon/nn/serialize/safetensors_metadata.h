// What a safetensors file says of itself, without its tensors.
#pragma once

#include <tenon/core/export.h>

#include <filesystem>
#include <map>
#include <string>

namespace tenon::nn {

/// The metadata of a file, of which nothing but the header is read; no device is touched. Throws Error for a file that
/// cannot be opened, is truncated, or has a header that is no such JSON.
TENON_API std::map<std::string, std::string> safetensors_metadata(const std::filesystem::path& path);

}  // namespace tenon::nn
