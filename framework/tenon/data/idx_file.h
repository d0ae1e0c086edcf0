// IDX files, the format of MNIST and its relatives: a magic number, big-endian sizes, then the elements.
//
//   00 00 08 RR | size_0 (4 bytes) … size_(RR-1) | bytes          08: unsigned bytes, RR: number of dimensions
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tenon::data {

/// A whole IDX file of unsigned bytes in row-major order.
struct IdxArray {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> bytes;
};

/// Reads a file, gzipped or not. Throws Error naming the file and what is wrong with it: missing, not IDX, another
/// element type than unsigned bytes, another rank than `rank`, sizes that do not fit, too short, longer than its header
/// says.
TENON_API IdxArray read_idx(const std::filesystem::path& path, int rank);

}  // namespace tenon::data
