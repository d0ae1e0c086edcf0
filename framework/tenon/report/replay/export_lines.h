// The lines that set PyTorch's allocator, for a reader to copy.
#pragma once

#include <string>

namespace tenon {

/// Two lines for a shell, for every version of PyTorch: `conf` under the new name and the one before it.
std::string export_lines(const std::string& conf);

}  // namespace tenon
