// Where the results of a command go.
#pragma once

#include <filesystem>
#include <string>

namespace tenon::cli {

/// Makes DIR, or tenon-out/NAME-DATE-TIME when that is empty. Throws ConfigError when it cannot.
std::filesystem::path make_output_folder(const std::filesystem::path& wanted, const std::string& name);

/// The text with what does not belong in a file's name replaced.
std::string plain_name(const std::string& text, char instead);

/// Throws Error when the file cannot be written.
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace tenon::cli
