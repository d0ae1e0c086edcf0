// Makes the plans of integer convolutions, and keeps them by shape.
#include "kernels/quantized/plan.h"

#include <map>
#include <memory>
#include <mutex>

namespace tenon::cpu {
namespace {

using Forward = dnnl::convolution_forward;

dnnl::primitive_attr attributes_of(const QuantizedConvKey& key, const memory::desc& channels) {
  dnnl::post_ops after;
  after.append_binary(dnnl::algorithm::binary_mul, channels);
  after.append_binary(dnnl::algorithm::binary_add, channels);
  if (key.relu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.x_zero_point) attributes.set_zero_points(DNNL_ARG_SRC, 0, {DNNL_RUNTIME_S32_VAL});
  if (key.y_zero_point) attributes.set_zero_points(DNNL_ARG_DST, 0, {DNNL_RUNTIME_S32_VAL});
  return attributes;
}

QuantizedConvPlan make_plan(const QuantizedConvKey& key, i64 slice, const QuantizedConvPlan* weights_like) {
  ConvShape s = key.s;
  (key.rows ? s.in[2] : s.batch) = slice;
  if (key.rows) s.out[2] = slice;
  const auto [x, y, w, stride, dilation, low, high] = conv_dims(s, /*first=*/1, s.batch, s.out_channels);
  using Tag = memory::format_tag;
  QuantizedConvPlan plan;
  plan.x = memory::desc(x, key.x_type, Tag::nhwc);
  plan.y = memory::desc(y, key.y_type, Tag::nhwc);
  plan.channels = memory::desc({1, s.out_channels, 1, 1}, memory::data_type::f32, Tag::nchw);
  const auto int8 = memory::data_type::s8;
  const memory::desc w_wanted = weights_like ? weights_like->w.wanted : memory::desc(w, int8, Tag::any);
  const Forward::primitive_desc description(
      Forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, plan.x, w_wanted, plan.y,
                    stride, dilation, low, high),
      attributes_of(key, plan.channels), onednn_engine());
  plan.w.connect(memory::desc(w, int8, s.groups > 1 ? Tag::goihw : Tag::oihw), description.weights_desc(), true);
  plan.convolution = Forward(description);
  plan.scratchpad = description.scratchpad_desc();
  plan.scratchpad_bytes = Side::align(plan.scratchpad.get_size());
  return plan;
}

}  // namespace

void run_slice(const QuantizedConvPlan& plan, const QuantizedConvKey& key, QuantizedSlice slice) {
  const auto& engine = onednn_engine();
  const memory::desc one({1}, memory::data_type::s32, memory::format_tag::a);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(plan.x, engine, slice.x)},
      {DNNL_ARG_WEIGHTS, memory(plan.w.wanted, engine, slice.w)},
      {DNNL_ARG_DST, memory(plan.y, engine, slice.y)},
      {DNNL_ARG_SCRATCHPAD, memory(plan.scratchpad, engine, slice.scratch)},
      {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, memory(plan.channels, engine, slice.multipliers)},
      {DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, memory(plan.channels, engine, slice.addends)}};
  if (key.x_zero_point)
    arguments.emplace(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, memory(one, engine, &slice.x_zero_point));
  if (key.y_zero_point)
    arguments.emplace(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, memory(one, engine, &slice.y_zero_point));
  plan.convolution.execute(onednn_stream(), arguments);
}

bool onednn_sums_bytes_exactly() {
  using Isa = dnnl::cpu_isa;
  static const bool value = [] {
    const Isa isa = dnnl::get_effective_cpu_isa();
    return isa == Isa::avx2_vnni || isa == Isa::avx512_core_vnni || isa == Isa::avx512_core_bf16 ||
           isa == Isa::avx512_core_amx;
  }();
  return value;
}

const QuantizedConvPlans* quantized_plans(const QuantizedConvKey& key) {
  static std::mutex mutex;
  static auto& known = *new std::map<QuantizedConvKey, std::unique_ptr<QuantizedConvPlans>>;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second.get();
  const OpenMpGuard threads(key.omp_threads);
  auto plans = std::make_unique<QuantizedConvPlans>();
  try {
    plans->main = make_plan(key, key.slice, nullptr);
    if (const i64 rest = key.units() % key.slice; rest != 0) plans->tail = make_plan(key, rest, &plans->main);
  } catch (const dnnl::error&) {
    plans = nullptr;
  }
  return known.emplace(key, std::move(plans)).first->second.get();
}

}  // namespace tenon::cpu
