// Problems for the packer from a seed.
#pragma once

#include <tenon/memory/packing/problem.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tenon::packing {

struct Shape {
  std::size_t buffers = 6;
  int times = 8;
  std::uint64_t sizes = 6;
  std::uint64_t most_alignment = 1;
  bool has_gaps = false;
};

inline std::vector<Buffer> random_problem(std::mt19937_64& random, const Shape& shape) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  std::vector<Buffer> buffers(shape.buffers);
  for (Buffer& buffer : buffers) {
    buffer.lower = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(shape.times)));
    buffer.upper = buffer.lower + 1 + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(shape.times) / 2));
    buffer.size = 1 + below(shape.sizes);
    buffer.alignment = 1 + below(shape.most_alignment);
    if (shape.has_gaps && buffer.upper - buffer.lower > 2 && below(2) == 0) {
      const std::uint64_t low = below(buffer.size);
      buffer.gaps.push_back({buffer.lower + 1, buffer.lower + 2, low, low + below(buffer.size - low + 1)});
    }
  }
  return buffers;
}

}  // namespace tenon::packing
