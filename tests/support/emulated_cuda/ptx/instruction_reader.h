// One instruction of PTX text.
#pragma once

#include "support/emulated_cuda/ptx/module.h"

#include <cstddef>
#include <map>
#include <string>

namespace tenon::emulated_cuda::ptx {

/// What the names in a function mean.
struct Names {
  std::map<std::string, std::uint64_t> registers;  ///< grows as they are met
  std::uint64_t register_count = 0;                ///< of all scopes
  std::map<std::string, std::uint64_t> addresses;  ///< of shared and local variables
  std::map<std::string, std::size_t> variables;    ///< of the module
};

/// "@%p1 add.s32 %r1, %r2, 7"; misuse() names an opcode that is not known. A name that means nothing yet (dynamic
/// shared memory) is left as an operand without a kind, and is `name` of the instruction.
Instruction read_instruction(const std::string& statement, Names& names);

}  // namespace tenon::emulated_cuda::ptx
