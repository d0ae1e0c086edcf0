// Picks the level of vector instructions by cpuid.
#include "isa.h"

#include <tenon/core/error.h>

#include <string>

namespace tenon::cpu {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    default:
      return "sse2";
  }
}

Isa widest_isa() {
  // GCC's builtin also asks whether the operating system saves the wide registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kSse2;
}

Isa choose_isa(std::string_view word) {
  const Isa widest = widest_isa();
  Isa wanted = widest;
  if (word == "sse2") wanted = Isa::kSse2;
  if (word == "avx2") wanted = Isa::kAvx2;
  if (word == "avx512") wanted = Isa::kAvx512;
  if (wanted > widest) {
    throw ConfigError("cpu: option 'isa' is " + std::string(word) + ", but this machine has " +
                      std::string(name_of(widest)) + " at most; use isa = \"auto\"");
  }
  return wanted;
}

}  // namespace tenon::cpu
