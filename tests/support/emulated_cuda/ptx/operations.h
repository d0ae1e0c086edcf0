// What the arithmetic instructions of PTX compute: one function each, found by the whole opcode ("add.rz.f32").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::emulated_cuda::ptx {

/// Inputs are the low bits of each word; so is the result. `carry` is the thread's flag for add.cc and the like.
using Compute = std::uint64_t (*)(const std::uint64_t* in, std::uint64_t& carry);

struct Operation {
  Compute compute = nullptr;
  std::size_t inputs = 0;
};

/// compute is null for an opcode that is not known.
Operation find_operation(std::string_view opcode);

/// All that are known, sorted.
std::vector<std::string> known_opcodes();

}  // namespace tenon::emulated_cuda::ptx
