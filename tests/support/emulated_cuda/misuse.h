// misuse(): how a program that breaks the rules of CUDA ends.
#pragma once

#include <string>

namespace tenon::emulated_cuda {

/// Prints "emulated CUDA: SENTENCE" and ends the program.
[[noreturn]] void misuse(const std::string& sentence);

std::string hexadecimal(unsigned long long value);

}  // namespace tenon::emulated_cuda
