// misuse(): a sentence on the standard error stream, then abort().
#include "support/emulated_cuda/misuse.h"

#include <cstdio>
#include <cstdlib>

namespace tenon::emulated_cuda {

void misuse(const std::string& sentence) {
  std::fprintf(stderr, "emulated CUDA: %s\n", sentence.c_str());
  std::abort();
}

std::string hexadecimal(unsigned long long value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", value);
  return text;
}

}  // namespace tenon::emulated_cuda
