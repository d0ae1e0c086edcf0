// All kernels of this backend.
#include "kernels/kernels.h"

#include <tenon/core/error.h>

#include <cstdarg>
#include <cstdio>
#include <string>

namespace tenon::cuda {

void add_all_kernels(const KernelSink& sink) {
  // Pointwise.
  add_unary(sink);
  add_unary_backward(sink);
  add_binary(sink);
  add_relations(sink);
  add_ternary(sink);
  add_copy(sink);

  // Reductions, lines, losses, indexing.
  add_reductions(sink);
  add_statistics(sink);
  add_arg_reductions(sink);
  add_scans(sink);
  add_sorting(sink);
  add_nonzero(sink);
  add_softmax(sink);
  add_norms(sink);
  add_batch_norm(sink);
  add_losses(sink);
  add_indexing(sink);
  add_triangles(sink);

  // Products, networks, optimisers, random numbers.
  add_matmul(sink);
  add_convolution(sink);
  add_attention(sink);
  add_paged_attention(sink);
  add_pooling(sink);
  add_folding(sink);
  add_recurrent(sink);
  add_optimizers(sink);
  add_random(sink);
  add_sequences(sink);
  add_quantize(sink);
  add_quantized_blocks(sink);
  add_quantized_convolution(sink);
  add_quantized_planar(sink);
  add_weight_only(sink);
}

void refuse(const char* format, ...) {
  char message[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  throw Error(message);
}

void refuse_dtype(const char* kernel, Dtype dtype) {
  refuse("cuda: kernel '%s' is not defined for %s", kernel, std::string(name_of(dtype)).c_str());
}

}  // namespace tenon::cuda
