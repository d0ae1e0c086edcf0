// A worker: runs cells of a sweep that another process follows, each in a process of its own.
#pragma once

#include <tenon/core/error.h>

#include <filesystem>
#include <optional>

namespace tenon::cli {

/// Cell `index` of the list in `folder`, or all that no other worker has claimed, one after the other. How each ends is
/// in the folder; the worker itself ends with 0 unless the list cannot be read, so that an engine like mpirun does not
/// end the others for a cell that failed. A signal that asks it to end is handed on to the cell, as is the list's stop.
ExitCode work_on_cells(const std::filesystem::path& folder, std::optional<std::size_t> index);

}  // namespace tenon::cli
