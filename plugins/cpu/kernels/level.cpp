// Registers the kernels of one level.
#include "kernels/nn/winograd.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

namespace {

#if defined(__AVX2__)
constexpr bool kMayHaveVnni = true;
#else
constexpr bool kMayHaveVnni = false;
#endif

}  // namespace

void add_level(const KernelSink& sink) {
  set_level_functions({.copy = &copy_view,
                       .to_channel_blocks = &to_channel_blocks,
                       .from_channel_blocks = &from_channel_blocks,
                       .winograd_forward = &winograd_forward,
                       .winograd_backward_input = &winograd_backward_input,
                       .winograd_backward_weight = &winograd_backward_weight,
                       .gemv = &gemv,
                       .quantized_rows = &quantized_rows,
                       .integer_products = &integer_products,
                       .may_have_vnni = kMayHaveVnni});
  add_unary(sink);
  add_binary(sink);
  add_relations(sink);
  add_ternary(sink);
  add_copy(sink);
  add_reductions(sink);
  add_statistics(sink);
  add_arg_reductions(sink);
  add_softmax(sink);
  add_attention(sink);
  add_paged_attention(sink);
  add_norms(sink);
  add_batch_norm(sink);
  add_pooling(sink);
  add_random(sink);
  add_recurrent(sink);
  add_optimizers(sink);
  add_quantize(sink);
  add_quantized_blocks(sink);
  add_vnni(sink);
  add_weight_only(sink);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
