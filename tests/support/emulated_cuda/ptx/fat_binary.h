// The PTX inside an object that nvcc made.
#pragma once

#include <string>

namespace tenon::emulated_cuda::ptx {

/// `wrapper`: what __cudaRegisterFatBinary is given. The text that a driver takes for a device of that compute
/// capability: of the newest architecture that is not newer than it. misuse() where there is none, or where it is
/// compressed.
std::string text_of_fat_binary(const void* wrapper, int compute_capability);

}  // namespace tenon::emulated_cuda::ptx
