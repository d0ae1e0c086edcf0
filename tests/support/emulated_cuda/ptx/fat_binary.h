// The PTX inside an object that nvcc made.
#pragma once

#include <string>

namespace tenon::emulated_cuda::ptx {

/// `wrapper`: what __cudaRegisterFatBinary is given. The text for the oldest architecture in it; misuse() where there
/// is none, or where it is compressed.
std::string text_of_fat_binary(const void* wrapper);

}  // namespace tenon::emulated_cuda::ptx
