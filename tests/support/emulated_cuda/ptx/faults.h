// Faults that tests put into kernels.
#pragma once

#include "support/emulated_cuda/emulated_cuda.h"

#include <string>

namespace tenon::emulated_cuda::ptx {

/// `text` with those of the faults whose kernels are in it; misuse() where such a kernel lacks the line.
std::string with_faults(std::string text, const std::vector<Fault>& faults);

}  // namespace tenon::emulated_cuda::ptx
