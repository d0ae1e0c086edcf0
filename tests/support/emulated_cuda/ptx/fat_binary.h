// The PTX inside an object that nvcc made, and the faults that tests put into it.
#pragma once

#include "support/emulated_cuda/emulated_cuda.h"

#include <string>
#include <vector>

namespace tenon::emulated_cuda::ptx {

/// `wrapper`: what __cudaRegisterFatBinary is given. The text that a driver takes for a device of that compute
/// capability: of the newest architecture that is not newer than it. misuse() where there is none, or where it is
/// compressed.
std::string text_of_fat_binary(const void* wrapper, int compute_capability);

/// `text` with those of the faults whose kernels are in it: a line of a kernel is another one, or is gone. misuse()
/// where such a kernel lacks the line.
std::string with_faults(std::string text, const std::vector<Fault>& faults);

}  // namespace tenon::emulated_cuda::ptx
