// Where a breach of an allocator's contract is named and shown small: the command for it.
#pragma once

#include <tenon/core/export.h>

#include <string>
#include <vector>

namespace tenon {

/// A sentence and a command `tenon plugins test` for each of these SPECs, once for equal ones, without a last newline;
/// empty for none.
TENON_API std::string kit_advice(const std::vector<std::string>& specs);

/// The SPEC of an allocator whose plugin is that file: "mine.so:chunk=1MiB", relative where the file is in or below the
/// current folder.
TENON_API std::string spec_of_file(const std::string& file, const std::string& options);

}  // namespace tenon
