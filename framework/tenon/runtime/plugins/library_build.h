// Which build of libtenon runs: results record it beside the hashes of plugins.
#pragma once

#include <tenon/core/export.h>

#include <string>

namespace tenon {

/// The linker's build ID of libtenon in hexadecimal digits, or the SHA-256 of its file where it was linked without one:
/// equal builds have equal ones.
TENON_API const std::string& library_build();

}  // namespace tenon
