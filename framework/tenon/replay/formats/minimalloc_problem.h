// The rows of a minimalloc problem: buffers with the times they live, and, if somebody has packed them, where they lie.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/problem.h>
#include <tenon/replay/formats/io/input_file.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::replay {

struct MinimallocProblem {
  std::vector<std::string> ids;          ///< by row; without a column of ids "0", "1", …
  std::vector<packing::Buffer> buffers;  ///< by row; a row of 0 bytes has its buffer here, which needs no place
};

/// Columns, in any order: id (buffer, buffer_id), lower (start, begin), upper (or end, inclusive), size, and alignment,
/// offset (where it has to lie), hint and gaps where there are any; others are passed over. Throws TraceError with file
/// and line.
TENON_API MinimallocProblem read_minimalloc_problem(InputFile& input);
TENON_API MinimallocProblem read_minimalloc_problem(const std::string& path);

/// The same columns with `offset` last, as minimalloc writes them; `offsets` by row. Whole or not at all, "-" is
/// standard output. Throws Error.
TENON_API void write_minimalloc_problem(const std::string& path, const MinimallocProblem& problem,
                                        std::span<const std::uint64_t> offsets);

}  // namespace tenon::replay
