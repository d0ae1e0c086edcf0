// SHA-256 of a file, as sha256sum prints it: results record which plugin binaries they were made with.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tenon {

/// 64 hexadecimal digits. Throws Error when the file cannot be read.
TENON_API std::string sha256_of_file(const std::filesystem::path& path);
TENON_API std::string sha256_of(std::span<const std::byte> bytes);

}  // namespace tenon
