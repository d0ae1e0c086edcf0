// All kernels: those of the chosen level, and those that are compiled once.
#include "kernels/register.h"

namespace tenon::cpu {

namespace avx2 {
void add_level(const KernelSink& sink);
}
namespace avx512 {
void add_level(const KernelSink& sink);
}

void add_all_kernels(const KernelSink& sink, Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      avx512::add_level(sink);
      break;
    case Isa::kAvx2:
      avx2::add_level(sink);
      break;
    default:
      sse2::add_level(sink);
      break;
  }
  sse2::add_matmul(sink);
  sse2::add_convolution(sink);
  sse2::add_losses(sink);
  sse2::add_scans(sink);
  sse2::add_sorting(sink);
  sse2::add_indexing(sink);
  sse2::add_triangles(sink);
  sse2::add_sequences(sink);
  sse2::add_folding(sink);
  sse2::add_quantized_convolution(sink);
}

}  // namespace tenon::cpu
