// Convolution through oneDNN: the work in slices over our own pool, each slice single-threaded in oneDNN.
//
// Slices are pictures, so few that what is reordered of them stays in a core's cache. Weight gradients of picture
// slices are added in order; where the weights are large beside the pictures, slices are output channels instead, which
// need no sum and less room. Operands that lie otherwise than oneDNN wants them are reordered into scratch, slice by
// slice.
#include <tenon/core/recycled.h>

#include <vector>

#include "kernels/nn/convolution_plan.h"
#include "kernels/rehearsal.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

bool channels_last(const TensorView& v) {
  i64 expected = 1;  // contiguous wins where both fit
  for (int d = v.rank - 1; d >= 0; --d) {
    if (v.sizes[d] != 1 && v.strides[d] != expected) return true;
    expected *= v.sizes[d];
  }
  return false;
}

void check(dnnl_status_t status) {
  if (status != dnnl_success) fail("cpu: convolution: oneDNN reports status %d", static_cast<int>(status));
}

using Rooms = std::vector<char*, RecycledAllocator<char*>>;

struct Job {
  const ConvPlans& plans;
  ConvKey key;
  i64 parts, pieces;
  char *x, *y, *bias;
  Rooms w;     // in oneDNN's layout: one that all slices read, or the gradient of each part
  Rooms more;  // and what a part's further slices add to it
  std::size_t w_elements;
  char* scratch;
  std::size_t scratch_step;
  std::size_t x_step, y_step;  // bytes of one slice
  dnnl_status_t status = dnnl_success;
};

void run_picture_slice(Job& job, int part, i64 piece) {
  const ConvPlan& plan = job.plans.of(piece, job.pieces);
  const ConvKind kind = job.key.kind;
  char* x = job.x + static_cast<std::size_t>(piece) * job.x_step;
  char* y = job.y + static_cast<std::size_t>(piece) * job.y_step;
  char* x_room = job.scratch + static_cast<std::size_t>(part) * job.scratch_step;
  char* y_room = x_room + plan.x.bytes;
  char* work = y_room + plan.y.bytes;
  if (plan.x.differs && kind != ConvKind::kBackwardInput) plan.x.move(x, x_room, work);
  if (plan.y.differs && kind != ConvKind::kForward) plan.y.move(y, y_room, work);
  const auto own = static_cast<std::size_t>(part);
  const bool adds = kind == ConvKind::kBackwardWeight && piece >= job.parts;
  char* const w = kind != ConvKind::kBackwardWeight ? job.w[0] : adds ? job.more[own] : job.w[own];
  const auto x_operand = [&](int as) { return operand(as, plan.x.wanted, plan.x.differs ? x_room : x); };
  const auto w_operand = [&](int as) { return operand(as, plan.w.wanted, w); };
  const auto y_operand = [&](int as) { return operand(as, plan.y.wanted, plan.y.differs ? y_room : y); };
  const dnnl_exec_arg_t pad = operand(DNNL_ARG_SCRATCHPAD, plan.scratchpad, work);
  if (kind == ConvKind::kForward) {
    const dnnl_exec_arg_t from = x_operand(DNNL_ARG_SRC), by = w_operand(DNNL_ARG_WEIGHTS),
                          to = y_operand(DNNL_ARG_DST);
    if (job.bias) {
      execute(plan.convolution, {from, by, to, pad, operand(DNNL_ARG_BIAS, plan.bias, job.bias)});
    } else {
      execute(plan.convolution, {from, by, to, pad});
    }
    if (plan.y.differs) plan.y.move(y_room, y, work);
  } else if (kind == ConvKind::kBackwardInput) {
    execute(plan.convolution,
            {x_operand(DNNL_ARG_DIFF_SRC), w_operand(DNNL_ARG_WEIGHTS), y_operand(DNNL_ARG_DIFF_DST), pad});
    if (plan.x.differs) plan.x.move(x_room, x, work);
  } else {
    plan.clear_left_out(w, work);
    execute(plan.convolution,
            {x_operand(DNNL_ARG_SRC), w_operand(DNNL_ARG_DIFF_WEIGHTS), y_operand(DNNL_ARG_DIFF_DST), pad});
    if (adds) {
      auto* sum = reinterpret_cast<float*>(job.w[own]);
      const auto* from = reinterpret_cast<const float*>(job.more[own]);
      for (std::size_t i = 0; i < job.w_elements; ++i) sum[i] += from[i];
    }
  }
}

void run_pictures(void* state, int part) {
  Job& job = *static_cast<Job*>(state);
  try {
    const OpenMpGuard threads(job.key.omp_threads);
    for (i64 piece = part; piece < job.pieces; piece += job.parts) run_picture_slice(job, part, piece);
  } catch (const dnnl::error& error) {
    job.status = error.status;
  }
}

// Adds the gradients of the other parts to the first, in order.
void add_gradients(const Rooms& gradients, i64 elements) {
  struct Add {
    const Rooms& gradients;
  } add{gradients};
  parallel_ranges(
      elements, 16384, 64,
      [](void* state, i64 begin, i64 end) {
        const auto& all = static_cast<const Add*>(state)->gradients;
        auto* sum = reinterpret_cast<float*>(all[0]);
        for (std::size_t p = 1; p < all.size(); ++p) {
          const auto* from = reinterpret_cast<const float*>(all[p]);
          for (i64 i = begin; i < end; ++i) sum[i] += from[i];
        }
      },
      &add);
}

struct Operands {
  const TensorView &x, &w, &y;
  const TensorView* bias;
};

ConvKey key_of(ConvKind kind, const ConvShape& s, const Operands& o) {
  return {kind,
          s,
          Divided::kByPicture,
          s.batch,
          1,
          1,
          o.bias != nullptr,
          channels_last(o.x),
          channels_last(o.w),
          channels_last(o.y),
          o.x.dtype == Dtype::kBFloat16};
}

// What a slice reads and writes between its reorders shall stay in the cache of a core.
constexpr i64 kSliceBytes = 1 << 20;
// A larger weight gradient is not worth adding up by slices.
constexpr i64 kSmallGradient = 1 << 20;

// Slices for each of `parts` threads.
i64 slices_of_part(const ConvKey& key, i64 parts) {
  const ConvShape& s = key.s;
  const i64 pictures = (s.batch + parts - 1) / parts;
  const auto element = static_cast<i64>(key.element_bytes());
  const i64 gradient = s.out_channels * (s.in_channels / s.groups) * s.window() * element;
  if (key.kind == ConvKind::kBackwardWeight && gradient > kSmallGradient) return 1;
  const i64 bytes = (s.in_channels * s.in_plane() + s.out_channels * s.out_plane()) * element;
  const i64 most = std::max<i64>(1, kSliceBytes / bytes);
  return (pictures + most - 1) / most;
}

bool by_picture(KernelContext& context, ConvKey key, const Operands& o, i64 threads) {
  const ConvShape& s = key.s;
  const bool few = s.batch * 2 <= threads;  // fewer pictures than threads: oneDNN divides them itself
  const bool gradient = key.kind == ConvKind::kBackwardWeight;
  const i64 parts = few ? 1 : std::min<i64>(s.batch, threads);
  const i64 wanted_pieces = few ? 1 : parts * slices_of_part(key, parts);
  key.slice = (s.batch + wanted_pieces - 1) / wanted_pieces;
  key.omp_threads = few ? static_cast<int>(threads) : 1;
  key.move_parts = static_cast<int>(threads);
  const ConvPlans* plans = plans_for(key);
  if (!plans) return false;

  const i64 pieces = (s.batch + key.slice - 1) / key.slice;
  Job job{.plans = *plans, .key = key, .parts = std::min(parts, pieces), .pieces = pieces};
  job.x = o.x.as<char>();
  job.y = o.y.as<char>();
  job.bias = o.bias ? o.bias->as<char>() : nullptr;
  const auto pictures = static_cast<std::size_t>(key.slice) * key.element_bytes();
  job.x_step = static_cast<std::size_t>(s.in_channels * s.in_plane()) * pictures;
  job.y_step = static_cast<std::size_t>(s.out_channels * s.out_plane()) * pictures;
  job.scratch_step = plans->slice_bytes();

  const Side& weights = plans->main.w;
  const std::size_t weight_bytes = Side::align(weights.wanted.get_size());
  // The weights' own tensor is one of the rooms: where the layouts agree it takes the sum, and otherwise, before the
  // sum is moved there, what another slice or part adds to it.
  char* own = o.w.as<char>();
  const bool own_fits = weights.wanted.get_size() == weights.plain.get_size();
  const bool adds = gradient && job.pieces > job.parts;
  const i64 w_count = gradient ? (adds ? 2 : 1) * job.parts : 1;
  const bool own_serves = !weights.differs || (w_count > 1 && own_fits);
  const auto rooms = static_cast<std::size_t>(own_serves ? w_count - 1 : w_count);
  const std::size_t shared = rooms * weight_bytes + weights.scratchpad_bytes;
  char* room = static_cast<char*>(context.scratch(shared + static_cast<std::size_t>(job.parts) * job.scratch_step));
  if (is_rehearsal()) return true;
  char* weight_work = room + rooms * weight_bytes;
  job.scratch = room + shared;
  for (i64 p = 0; p < w_count; ++p) {
    const bool is_own = own_serves && p == (weights.differs ? 1 : 0);
    (gradient && p >= job.parts ? job.more : job.w).push_back(is_own ? own : room);
    if (!is_own) room += weight_bytes;
  }
  job.w_elements = weights.wanted.get_size() / sizeof(float);

  const OpenMpGuard inside(key.omp_threads);
  if (weights.differs && !gradient) weights.move_in_parts(own, job.w[0], weight_work);
  run_parts(static_cast<int>(job.parts), &run_pictures, &job);
  check(job.status);
  if (gradient) {
    if (job.parts > 1) add_gradients(job.w, static_cast<i64>(job.w_elements));
    if (weights.differs) weights.move_in_parts(job.w[0], own, weight_work);
  }
  return true;
}

struct ChannelJob {
  const ConvPlans& plans;
  i64 parts, pieces;
  memory x;
  char *y, *w;
  char* scratch;
  std::size_t scratch_step;
  std::size_t y_step, w_step;  // bytes from one slice to the next
  dnnl_status_t status = dnnl_success;
};

void run_channels(void* state, int part) {
  ChannelJob& job = *static_cast<ChannelJob*>(state);
  try {
    const OpenMpGuard one(1);
    for (i64 piece = part; piece < job.pieces; piece += job.parts) {
      const ConvPlan& plan = job.plans.of(piece, job.pieces);
      char* y = job.y + static_cast<std::size_t>(piece) * job.y_step;
      char* w = job.w + static_cast<std::size_t>(piece) * job.w_step;
      char* y_room = job.scratch + static_cast<std::size_t>(part) * job.scratch_step;
      char* w_room = y_room + plan.y.bytes;
      char* work = w_room + plan.w.bytes;
      if (plan.y.differs) plan.y.move(y, y_room, work);
      plan.clear_left_out(plan.w.differs ? w_room : w, work);
      execute(plan.convolution, {{DNNL_ARG_SRC, job.x.get()},
                                 operand(DNNL_ARG_DIFF_WEIGHTS, plan.w.wanted, plan.w.differs ? w_room : w),
                                 operand(DNNL_ARG_DIFF_DST, plan.y.wanted, plan.y.differs ? y_room : y),
                                 operand(DNNL_ARG_SCRATCHPAD, plan.scratchpad, work)});
      if (plan.w.differs) plan.w.move(w_room, w, work);
    }
  } catch (const dnnl::error& error) {
    job.status = error.status;
  }
}

constexpr i64 kLeastChannels = 64;  // of a slice: with fewer, oneDNN's vector loops run short

// Weight gradient by slices of output channels, four for each thread: at any time a quarter of the weights has room.
bool by_channel(KernelContext& context, ConvKey key, const Operands& o, i64 threads) {
  const ConvShape& s = key.s;
  key.divided = Divided::kByChannel;
  key.move_parts = static_cast<int>(threads);
  const i64 wanted_pieces = 4 * threads;
  key.slice = std::max(kLeastChannels, (s.out_channels + wanted_pieces - 1) / wanted_pieces / 16 * 16);
  const ConvPlans* plans = plans_for(key);
  // The slices share the pictures.
  if (!plans || (plans->tail && plans->tail->x.wanted != plans->main.x.wanted)) return false;

  ChannelJob job{.plans = *plans, .parts = threads, .pieces = (s.out_channels + key.slice - 1) / key.slice};
  const auto channels = static_cast<std::size_t>(key.slice) * key.element_bytes();
  job.y_step = channels * static_cast<std::size_t>(key.y_last ? 1 : s.out_plane());
  job.w_step = channels * static_cast<std::size_t>(s.in_channels * s.window());
  job.y = o.y.as<char>();
  job.w = o.w.as<char>();
  auto step = [](const ConvPlan& plan) { return plan.y.bytes + plan.w.bytes + plan.work_bytes(); };
  job.scratch_step = std::max(step(plans->main), plans->tail ? step(*plans->tail) : 0);
  const Side& pictures = plans->main.x;
  const std::size_t shared = pictures.bytes + pictures.scratchpad_bytes;
  char* room = static_cast<char*>(context.scratch(shared + static_cast<std::size_t>(threads) * job.scratch_step));
  if (is_rehearsal()) return true;
  job.scratch = room + shared;
  const OpenMpGuard one(1);
  if (pictures.differs) pictures.move_in_parts(o.x.as<char>(), room, room + pictures.bytes);
  job.x = memory(pictures.wanted, onednn_engine(), pictures.differs ? room : o.x.as<char>());
  run_parts(static_cast<int>(threads), &run_channels, &job);
  check(job.status);
  return true;
}

bool run(KernelContext& context, ConvKind kind, const ConvShape& s, const Operands& o) {
  const i64 products = s.in_channels / s.groups * s.window();  // of an output
  const double work = static_cast<double>(s.batch * s.out_channels * s.out_plane()) * static_cast<double>(products);
  const i64 threads = in_part() || work < 200e3 ? 1 : thread_count();
  const ConvKey key = key_of(kind, s, o);
  const bool weights_are_large = 2 * s.out_channels * s.window() > s.batch * s.in_plane();  // for the pictures
  if (kind == ConvKind::kBackwardWeight && s.groups == 1 && weights_are_large &&
      s.out_channels >= threads * kLeastChannels && by_channel(context, key, o, threads)) {
    return true;
  }
  return by_picture(context, key, o, threads);
}

}  // namespace

bool onednn_forward(KernelContext& context, const ConvShape& s, const TensorView& x, const TensorView& w,
                    const TensorView* bias, const TensorView& y) {
  return run(context, ConvKind::kForward, s, {x, w, y, bias});
}
bool onednn_backward_input(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& w,
                           const TensorView& dx) {
  return run(context, ConvKind::kBackwardInput, s, {dx, w, dy, nullptr});
}
bool onednn_backward_weight(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& x,
                            const TensorView& dw) {
  return run(context, ConvKind::kBackwardWeight, s, {x, dw, dy, nullptr});
}

}  // namespace tenon::cpu
