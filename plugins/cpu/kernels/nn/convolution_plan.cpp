// Makes the plans of convolutions, and keeps them by shape.
#include "kernels/nn/convolution_plan.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "thread_pool.h"

namespace tenon::cpu {
namespace {

// Strides of a dense tensor (lead dimensions, channels, spatial …): row-major, or with the channels innermost.
memory::dims dense_strides(const memory::dims& sizes, int channel, bool last) {
  memory::dims strides(sizes.size());
  i64 expected = 1;
  if (last) {
    strides[channel] = 1;
    expected = sizes[channel];
  }
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    if (last && d == channel) continue;
    strides[d] = expected;
    expected *= sizes[d];
  }
  return strides;
}

/// A part of the first dimension, which is the outermost in memory, and the bytes that it takes; nothing where the
/// dimension does not divide into `parts` whole blocks.
std::optional<std::pair<memory::desc, std::size_t>> part_of(const memory::desc& whole, int parts) {
  dnnl_memory_desc_t d = whole.data;
  const auto& blocking = d.format_desc.blocking;
  i64 block = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) block *= blocking.inner_idxs[i] == 0 ? blocking.inner_blks[i] : 1;
  if (d.dims[0] != d.padded_dims[0] || d.dims[0] % (parts * block) != 0) return std::nullopt;
  for (int i = 1; i < d.ndims; ++i) {
    if (blocking.strides[i] > blocking.strides[0]) return std::nullopt;
  }
  d.dims[0] /= parts;
  d.padded_dims[0] /= parts;
  return std::pair(memory::desc(d), static_cast<std::size_t>(d.dims[0] / block * blocking.strides[0]) *
                                        memory::data_type_size(whole.data_type()));
}

/// How pictures that lie by channel in `plain` go to blocks of channels in `blocked`; nothing where they do not.
std::optional<ChannelBlocks> channel_blocks(const memory::desc& plain, const memory::desc& blocked) {
  const dnnl_memory_desc_t &ours = plain.data, &theirs = blocked.data;
  const auto &rows = ours.format_desc.blocking, &blocks = theirs.format_desc.blocking;
  const auto element_bytes = static_cast<i64>(memory::data_type_size(plain.data_type()));
  if ((element_bytes != 2 && element_bytes != 4) || plain.data_type() != blocked.data_type()) return std::nullopt;
  if (ours.format_kind != dnnl_blocked || theirs.format_kind != dnnl_blocked || ours.ndims < 3) return std::nullopt;
  if (rows.inner_nblks != 0 || blocks.inner_nblks != 1 || blocks.inner_idxs[0] != 1) return std::nullopt;
  const i64 block = blocks.inner_blks[0], channels = ours.dims[1];
  if (block != 8 && block != 16) return std::nullopt;
  i64 plane = 1;
  for (int d = ours.ndims - 1; d >= 2; --d) {
    if (rows.strides[d] != plane || blocks.strides[d] != plane * block) return std::nullopt;
    plane *= ours.dims[d];
  }
  const ChannelBlocks shape{ours.dims[0], channels, plane, rows.strides[0], block, element_bytes};
  if (rows.strides[1] != plane || blocks.strides[1] != plane * block || blocks.strides[0] != shape.picture_elements())
    return std::nullopt;
  return shape;
}

/// Whether an element of the window meets padding alone, wherever the window lies.
bool meets_padding_alone(const ConvShape& s) {
  for (int d = 3 - s.spatial; d < 3; ++d) {
    for (i64 tap = 0; tap < s.kernel[d]; ++tap) {
      bool inside = false;
      for (i64 o = 0; o < s.out[d] && !inside; ++o) {
        const i64 at = o * s.stride[d] - s.padding[d] + tap * s.dilation[d];
        inside = at >= 0 && at < s.in[d];
      }
      if (!inside) return true;
    }
  }
  return false;
}

ConvPlan make_plan(const ConvKey& key, i64 slice, const memory::desc* weights_like) {
  const ConvShape& s = key.s;
  const bool by_channel = key.divided == Divided::kByChannel;
  const i64 pictures = by_channel ? s.batch : slice;
  const i64 out_channels = by_channel ? slice : s.out_channels;
  const auto type = key.type();
  const bool sums = key.kind == ConvKind::kBackwardWeight;
  const ConvDims dims = conv_dims(s, 3 - s.spatial, pictures, out_channels);
  const memory::dims &x = dims.x, &y = dims.y, &w = dims.w, &stride = dims.stride, &dilation = dims.dilation,
                     &low = dims.low, &high = dims.high;
  const int weight_channel = s.groups > 1 ? 2 : 1;
  const memory::desc x_any(x, type, memory::format_tag::any),
      w_any(w, sums ? memory::data_type::f32 : type, memory::format_tag::any), y_any(y, type, memory::format_tag::any);
  memory::dims whole_y = y;
  whole_y[1] = s.out_channels;
  const memory::desc x_plain(x, type, dense_strides(x, 1, key.x_last)),
      y_plain(y, type, dense_strides(whole_y, 1, key.y_last)),
      w_plain(w, type, dense_strides(w, weight_channel, key.w_last));
  const memory::desc& w_request = weights_like ? *weights_like : w_any;
  const memory::desc bias({out_channels}, type, memory::format_tag::a);

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto training = dnnl::prop_kind::forward_training;
  using Forward = dnnl::convolution_forward;
  auto forward_for = [&](const memory::desc& weights, bool with_bias) {
    return Forward::primitive_desc(
        with_bias ? Forward::desc(training, direct, x_any, weights, bias, y_any, stride, dilation, low, high)
                  : Forward::desc(training, direct, x_any, weights, y_any, stride, dilation, low, high),
        attributes, onednn_engine());
  };

  ConvPlan plan;
  plan.bias = bias;
  if (key.kind == ConvKind::kForward) {
    const auto description = forward_for(w_request, key.bias);
    plan.x.connect(x_plain, description.src_desc(), true);
    plan.w.connect(w_plain, description.weights_desc(), true);
    plan.y.connect(y_plain, description.dst_desc(), false);
    plan.convolution = Forward(description);
    plan.scratchpad = description.scratchpad_desc();
  } else if (key.kind == ConvKind::kBackwardInput) {
    using Backward = dnnl::convolution_backward_data;
    const Backward::primitive_desc description(
        Backward::desc(direct, x_any, w_request, y_any, stride, dilation, low, high), attributes, onednn_engine(),
        forward_for(w_any, false));
    plan.x.connect(x_plain, description.diff_src_desc(), false);
    plan.w.connect(w_plain, description.weights_desc(), true);
    plan.y.connect(y_plain, description.diff_dst_desc(), true);
    plan.convolution = Backward(description);
    plan.scratchpad = description.scratchpad_desc();
  } else {
    using Backward = dnnl::convolution_backward_weights;
    const Backward::primitive_desc description(
        Backward::desc(direct, x_any, w_request, y_any, stride, dilation, low, high), attributes, onednn_engine(),
        forward_for(memory::desc(w, type, memory::format_tag::any), false));
    plan.x.connect(x_plain, description.src_desc(), true);
    plan.w.connect(w_plain, description.diff_weights_desc(), false);
    plan.y.connect(y_plain, description.diff_dst_desc(), true);
    plan.convolution = Backward(description);
    plan.scratchpad = description.scratchpad_desc();
    plan.leaves_out = meets_padding_alone(s);
  }
  plan.scratchpad_bytes = Side::align(plan.scratchpad.get_size());
  return plan;
}

}  // namespace

ConvDims conv_dims(const ConvShape& s, int first, i64 pictures, i64 out_channels) {
  ConvDims dims{.x = {pictures, s.in_channels},
                .y = {pictures, out_channels},
                .w = {},
                .stride = {},
                .dilation = {},
                .low = {},
                .high = {}};
  if (s.groups > 1) dims.w.push_back(s.groups);
  dims.w.push_back(out_channels / s.groups);
  dims.w.push_back(s.in_channels / s.groups);
  for (int d = first; d < 3; ++d) {
    dims.x.push_back(s.in[d]);
    dims.y.push_back(s.out[d]);
    dims.w.push_back(s.kernel[d]);
    dims.stride.push_back(s.stride[d]);
    dims.dilation.push_back(s.dilation[d] - 1);
    dims.low.push_back(s.padding[d]);
    dims.high.push_back((s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1 - s.in[d] - s.padding[d]);
  }
  return dims;
}

const dnnl::engine& onednn_engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}
dnnl::stream& onednn_stream() {
  thread_local dnnl::stream instance(onednn_engine());
  return instance;
}

dnnl_exec_arg_t operand(int argument, const memory::desc& description, void* data) {
  thread_local std::unordered_map<const memory::desc*, memory> known;
  auto found = known.find(&description);
  if (found == known.end()) {
    found = known.try_emplace(&description, description, onednn_engine(), data).first;
  } else {
    found->second.set_data_handle(data);
  }
  return {argument, found->second.get()};
}
void execute(const dnnl::primitive& primitive, std::initializer_list<dnnl_exec_arg_t> operands) {
  const int count = static_cast<int>(operands.size());
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), onednn_stream().get(), count, operands.begin()),
                          "could not execute a primitive");
}

void ConvPlan::clear_left_out(char* gradient, char* work) const {
  if (!leaves_out) return;
  std::memset(gradient, 0, w.wanted.get_size());
  std::memset(work, 0, scratchpad_bytes);
}

void Side::connect(const memory::desc& ours, const memory::desc& theirs, bool into) {
  into_onednn = into;
  plain = ours;
  wanted = theirs;
  differs = ours != theirs;
  if (!differs) return;
  bytes = align(theirs.get_size());
  blocks_ = channel_blocks(ours, theirs);
  if (blocks_) return;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc& from = into_onednn ? ours : theirs;
  const memory::desc& to = into_onednn ? theirs : ours;
  const dnnl::reorder::primitive_desc description(onednn_engine(), from, onednn_engine(), to, attributes);
  reorder = dnnl::reorder(description);
  scratchpad = description.scratchpad_desc();
  scratchpad_bytes = align(scratchpad.get_size());
}
void Side::move_blocks(char* from, char* to, i64 first_picture, i64 count) const {
  ChannelBlocks pictures = *blocks_;
  pictures.pictures = count;
  const i64 in_rows = first_picture * pictures.plain_step * pictures.element_bytes;
  const i64 in_blocks = first_picture * pictures.picture_elements() * pictures.element_bytes;
  if (into_onednn) {
    level_functions().to_channel_blocks(to + in_blocks, from + in_rows, pictures);
  } else {
    level_functions().from_channel_blocks(to + in_rows, from + in_blocks, pictures);
  }
}
void Side::move(char* from, char* to, char* work) const {
  if (blocks_) return move_blocks(from, to, 0, blocks_->pictures);
  execute(reorder,
          {operand(DNNL_ARG_FROM, into_onednn ? plain : wanted, from),
           operand(DNNL_ARG_TO, into_onednn ? wanted : plain, to), operand(DNNL_ARG_SCRATCHPAD, scratchpad, work)});
}

void Side::divide(int parts) {
  if (!differs || parts < 2) return;
  if (blocks_) {
    parts_ = parts;
    return;
  }
  const auto ours = part_of(plain, parts), theirs = part_of(wanted, parts);
  if (!ours || !theirs) return;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc& from = into_onednn ? ours->first : theirs->first;
  const memory::desc& to = into_onednn ? theirs->first : ours->first;
  const dnnl::reorder::primitive_desc description(onednn_engine(), from, onednn_engine(), to, attributes);
  if (description.scratchpad_desc().get_size() != 0) return;
  part_reorder_ = dnnl::reorder(description);
  std::tie(part_plain_, plain_step_) = *ours;
  std::tie(part_wanted_, wanted_step_) = *theirs;
  parts_ = parts;
}

void Side::move_in_parts(char* from, char* to, char* work) const {
  if (parts_ == 1) return move(from, to, work);
  struct Job {
    const Side& side;
    char *from, *to, *plain, *wanted;
    dnnl_status_t status = dnnl_success;
  } job{*this, from, to, into_onednn ? from : to, into_onednn ? to : from};
  run_parts(
      parts_,
      [](void* state, int part) {
        Job& j = *static_cast<Job*>(state);
        const Side& s = j.side;
        if (s.blocks_) {
          const i64 first = s.blocks_->pictures * part / s.parts_, end = s.blocks_->pictures * (part + 1) / s.parts_;
          return s.move_blocks(j.from, j.to, first, end - first);
        }
        try {
          const OpenMpGuard one(1);
          const auto at = static_cast<std::size_t>(part);
          execute(
              s.part_reorder_,
              {operand(s.into_onednn ? DNNL_ARG_FROM : DNNL_ARG_TO, s.part_plain_, j.plain + at * s.plain_step_),
               operand(s.into_onednn ? DNNL_ARG_TO : DNNL_ARG_FROM, s.part_wanted_, j.wanted + at * s.wanted_step_)});
        } catch (const dnnl::error& error) {
          j.status = error.status;
        }
      },
      &job);
  if (job.status != dnnl_success) throw dnnl::error(job.status, "a reorder in parts failed");
}

const ConvPlans* plans_for(const ConvKey& key) {
  static std::mutex mutex;
  static auto& known = *new std::map<ConvKey, std::unique_ptr<ConvPlans>>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second.get();
  const OpenMpGuard threads(key.omp_threads);
  auto plans = std::make_unique<ConvPlans>();
  try {
    plans->main = make_plan(key, key.slice, nullptr);
    // What all slices share is moved at once.
    const bool by_channel = key.divided == Divided::kByChannel;
    (by_channel ? plans->main.x : plans->main.w).divide(key.move_parts);
    if (const i64 rest = (by_channel ? key.s.out_channels : key.s.batch) % key.slice; rest != 0) {
      // Slices of the batch share the weights, so the tail takes them as the others do.
      plans->tail = make_plan(key, rest, by_channel ? nullptr : &plans->main.w.wanted);
    }
  } catch (const dnnl::error&) {
    plans = nullptr;
  }
  return known.emplace(key, std::move(plans)).first->second.get();
}

}  // namespace tenon::cpu
