// Which vector instructions: one binary holds the kernels compiled for each level, and picks at run time.
#pragma once

#include <string_view>

namespace tenon::cpu {

enum class Isa { kSse2, kAvx2, kAvx512 };

/// "sse2", "avx2", "avx512".
std::string_view name_of(Isa isa);

/// The widest level that this machine, its operating system and this binary have.
Isa widest_isa();

/// "auto" is the widest. Throws ConfigError, naming the widest level, for one that this machine lacks.
Isa choose_isa(std::string_view word);

}  // namespace tenon::cpu
