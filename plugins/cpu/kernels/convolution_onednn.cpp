// Convolution through oneDNN: the batch in slices over our own pool, each slice single-threaded in oneDNN.
//
// oneDNN chooses the memory layouts; operands that lie otherwise are reordered into scratch, slice by slice. Its
// scratchpad is the user's (ours), so that every byte comes from the allocator. Weight gradients of slices are added in
// order.
#include <dnnl.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "../thread_pool.h"
#include "convolution.h"

namespace tenon::cpu {
namespace {

using i64 = std::int64_t;
using dnnl::memory;

enum class Kind { kForward, kBackwardInput, kBackwardWeight };

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}
dnnl::stream& stream() {
  thread_local dnnl::stream instance(engine());
  return instance;
}

bool channels_last(const TensorView& v) {
  i64 expected = 1;  // contiguous wins where both fit
  for (int d = v.rank - 1; d >= 0; --d) {
    if (v.sizes[d] != 1 && v.strides[d] != expected) return true;
    expected *= v.sizes[d];
  }
  return false;
}

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

struct Key {
  Kind kind;
  ConvShape s;
  i64 slice;
  int omp_threads;
  bool bias, x_last, w_last, y_last;

  auto tie() const {
    auto list = [](const i64* v) { return std::tie(v[0], v[1], v[2]); };
    return std::tuple_cat(std::tie(kind, slice, omp_threads, bias, x_last, w_last, y_last, s.spatial, s.batch,
                                   s.in_channels, s.out_channels, s.groups),
                          list(s.in), list(s.out), list(s.kernel), list(s.stride), list(s.padding), list(s.dilation));
  }
  bool operator<(const Key& other) const { return tie() < other.tie(); }
};

// One operand: how it lies with us, how oneDNN wants it, and the way between.
struct Side {
  memory::desc plain, wanted;
  dnnl::reorder reorder;
  bool differs = false;
  std::size_t bytes = 0;  // in scratch, per slice

  void connect(const memory::desc& ours, const memory::desc& theirs, bool into_onednn) {
    plain = ours;
    wanted = theirs;
    differs = ours != theirs;
    if (!differs) return;
    bytes = align(theirs.get_size());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc& from = into_onednn ? ours : theirs;
    const memory::desc& to = into_onednn ? theirs : ours;
    const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, attributes);
    reorder = dnnl::reorder(description);
    scratchpad = description.scratchpad_desc();
    scratchpad_bytes = align(scratchpad.get_size());
  }
  static std::size_t align(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  memory::desc scratchpad;
  std::size_t scratchpad_bytes = 0;
};

// A convolution of one slice of the batch.
struct Plan {
  Side x, w, y;
  memory::desc bias;
  dnnl::primitive convolution;
  memory::desc scratchpad;
  std::size_t scratchpad_bytes = 0;
  i64 slice = 0;

  std::size_t slice_bytes() const { return x.bytes + y.bytes + work_bytes(); }
  std::size_t work_bytes() const {
    return std::max({scratchpad_bytes, x.scratchpad_bytes, y.scratchpad_bytes, w.scratchpad_bytes});
  }
};

struct Plans {
  Plan main;
  std::optional<Plan> tail;  // the last slice where it is smaller
};

Plan make_plan(const Key& key, i64 slice, const memory::desc* weights_like) {
  const ConvShape& s = key.s;
  const int first = 3 - s.spatial;
  const auto type = memory::data_type::f32;
  memory::dims x{slice, s.in_channels}, y{slice, s.out_channels}, w, stride, dilation, low, high;
  if (s.groups > 1) w.push_back(s.groups);
  w.push_back(s.out_channels / s.groups);
  w.push_back(s.in_channels / s.groups);
  const int weight_channel = static_cast<int>(w.size()) - 1;
  for (int d = first; d < 3; ++d) {
    x.push_back(s.in[d]);
    y.push_back(s.out[d]);
    w.push_back(s.kernel[d]);
    stride.push_back(s.stride[d]);
    dilation.push_back(s.dilation[d] - 1);
    low.push_back(s.padding[d]);
    high.push_back((s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1 - s.in[d] - s.padding[d]);
  }
  const memory::desc x_any(x, type, memory::format_tag::any), w_any(w, type, memory::format_tag::any),
      y_any(y, type, memory::format_tag::any);
  const memory::desc x_plain(x, type, dense_strides(x, 1, key.x_last)),
      y_plain(y, type, dense_strides(y, 1, key.y_last)), w_plain(w, type, dense_strides(w, weight_channel, key.w_last));
  const memory::desc& w_request = weights_like ? *weights_like : w_any;
  const memory::desc bias({s.out_channels}, type, memory::format_tag::a);

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto training = dnnl::prop_kind::forward_training;
  using Forward = dnnl::convolution_forward;
  auto forward_for = [&](const memory::desc& weights, bool with_bias) {
    return Forward::primitive_desc(
        with_bias ? Forward::desc(training, direct, x_any, weights, bias, y_any, stride, dilation, low, high)
                  : Forward::desc(training, direct, x_any, weights, y_any, stride, dilation, low, high),
        attributes, engine());
  };

  Plan plan;
  plan.slice = slice;
  plan.bias = bias;
  if (key.kind == Kind::kForward) {
    const auto description = forward_for(w_request, key.bias);
    plan.x.connect(x_plain, description.src_desc(), true);
    plan.w.connect(w_plain, description.weights_desc(), true);
    plan.y.connect(y_plain, description.dst_desc(), false);
    plan.convolution = Forward(description);
    plan.scratchpad = description.scratchpad_desc();
  } else if (key.kind == Kind::kBackwardInput) {
    using Backward = dnnl::convolution_backward_data;
    const Backward::primitive_desc description(
        Backward::desc(direct, x_any, w_request, y_any, stride, dilation, low, high), attributes, engine(),
        forward_for(w_any, false));
    plan.x.connect(x_plain, description.diff_src_desc(), false);
    plan.w.connect(w_plain, description.weights_desc(), true);
    plan.y.connect(y_plain, description.diff_dst_desc(), true);
    plan.convolution = Backward(description);
    plan.scratchpad = description.scratchpad_desc();
  } else {
    using Backward = dnnl::convolution_backward_weights;
    const Backward::primitive_desc description(
        Backward::desc(direct, x_any, w_request, y_any, stride, dilation, low, high), attributes, engine(),
        forward_for(w_any, false));
    plan.x.connect(x_plain, description.src_desc(), true);
    plan.w.connect(w_plain, description.diff_weights_desc(), false);
    plan.y.connect(y_plain, description.diff_dst_desc(), true);
    plan.convolution = Backward(description);
    plan.scratchpad = description.scratchpad_desc();
  }
  plan.scratchpad_bytes = Side::align(plan.scratchpad.get_size());
  return plan;
}

// Built once per shape; null where oneDNN has no implementation. Never dropped: a program has few shapes.
const Plans* plans_for(const Key& key) {
  static std::mutex mutex;
  static auto& known = *new std::map<Key, std::unique_ptr<Plans>>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second.get();
  const OpenMpGuard threads(key.omp_threads);
  auto plans = std::make_unique<Plans>();
  try {
    plans->main = make_plan(key, key.slice, nullptr);
    if (const i64 rest = key.s.batch % key.slice; rest != 0) plans->tail = make_plan(key, rest, &plans->main.w.wanted);
  } catch (const dnnl::error&) {
    plans = nullptr;
  }
  return known.emplace(key, std::move(plans)).first->second.get();
}

struct Job {
  const Plans& plans;
  Kind kind;
  int omp_threads;
  i64 parts;
  char *x, *w, *y, *bias;  // w: in oneDNN's layout; of part p's own gradient at p * w_step
  std::size_t w_step;
  char* scratch;
  std::size_t scratch_step;
  std::size_t x_step, y_step;  // bytes of one picture
  dnnl_status_t status = dnnl_success;
};

void reorder(const Side& side, char* from, char* to, bool into_onednn, char* work) {
  memory a(into_onednn ? side.plain : side.wanted, engine(), from);
  memory b(into_onednn ? side.wanted : side.plain, engine(), to);
  memory pad(side.scratchpad, engine(), work);
  side.reorder.execute(stream(), {{DNNL_ARG_FROM, a}, {DNNL_ARG_TO, b}, {DNNL_ARG_SCRATCHPAD, pad}});
}

void run_slice(void* state, int part) {
  Job& job = *static_cast<Job*>(state);
  try {
    const OpenMpGuard threads(job.omp_threads);
    const bool is_tail = job.plans.tail && part == job.parts - 1;
    const Plan& plan = is_tail ? *job.plans.tail : job.plans.main;
    const std::size_t first = static_cast<std::size_t>(part * job.plans.main.slice);
    char* x = job.x + first * job.x_step;
    char* y = job.y + first * job.y_step;
    char* x_room = job.scratch + static_cast<std::size_t>(part) * job.scratch_step;
    char* y_room = x_room + plan.x.bytes;
    char* work = y_room + plan.y.bytes;
    if (plan.x.differs && job.kind != Kind::kBackwardInput) reorder(plan.x, x, x_room, true, work);
    if (plan.y.differs && job.kind != Kind::kForward) reorder(plan.y, y, y_room, true, work);
    memory mx(plan.x.wanted, engine(), plan.x.differs ? x_room : x);
    memory my(plan.y.wanted, engine(), plan.y.differs ? y_room : y);
    memory mw(plan.w.wanted, engine(), job.w + static_cast<std::size_t>(part) * job.w_step);
    memory pad(plan.scratchpad, engine(), work);
    if (job.kind == Kind::kForward) {
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DST, my}, {DNNL_ARG_SCRATCHPAD, pad}};
      if (job.bias) arguments.emplace(DNNL_ARG_BIAS, memory(plan.bias, engine(), job.bias));
      plan.convolution.execute(stream(), arguments);
      if (plan.y.differs) reorder(plan.y, y_room, y, false, work);
    } else if (job.kind == Kind::kBackwardInput) {
      plan.convolution.execute(
          stream(),
          {{DNNL_ARG_DIFF_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DIFF_DST, my}, {DNNL_ARG_SCRATCHPAD, pad}});
      if (plan.x.differs) reorder(plan.x, x_room, x, false, work);
    } else {
      plan.convolution.execute(
          stream(),
          {{DNNL_ARG_SRC, mx}, {DNNL_ARG_DIFF_WEIGHTS, mw}, {DNNL_ARG_DIFF_DST, my}, {DNNL_ARG_SCRATCHPAD, pad}});
    }
  } catch (const dnnl::error& error) {
    job.status = error.status;
  }
}

// Adds the parts' weight gradients into the first, in order.
void add_parts(float* sum, const char* parts, std::size_t step, i64 count, i64 elements) {
  struct Add {
    float* sum;
    const char* parts;
    std::size_t step;
    i64 count;
  } add{sum, parts, step, count};
  parallel_ranges(
      elements, 16384, 64,
      [](void* state, i64 begin, i64 end) {
        const Add& a = *static_cast<Add*>(state);
        for (i64 p = 1; p < a.count; ++p) {
          const float* from = reinterpret_cast<const float*>(a.parts + static_cast<std::size_t>(p) * a.step);
          for (i64 i = begin; i < end; ++i) a.sum[i] += from[i];
        }
      },
      &add);
}

bool run(KernelContext& context, Kind kind, const ConvShape& s, const TensorView& x, const TensorView& w,
         const TensorView* bias, const TensorView& y) {
  const double work = static_cast<double>(s.batch * s.out_channels * s.out_plane()) *
                      static_cast<double>(s.in_channels / s.groups * s.window());
  const i64 threads = in_part() || work < 200e3 ? 1 : thread_count();
  const bool few = s.batch * 2 <= threads;  // fewer pictures than threads: oneDNN divides them itself
  const i64 wanted_parts = few ? 1 : std::min<i64>(s.batch, threads);
  const i64 slice = (s.batch + wanted_parts - 1) / wanted_parts;
  Key key{kind,
          s,
          slice,
          few ? static_cast<int>(threads) : 1,
          bias != nullptr,
          channels_last(x),
          channels_last(w),
          channels_last(y)};
  const Plans* plans = plans_for(key);
  if (!plans) return false;

  Job job{.plans = *plans, .kind = kind, .omp_threads = key.omp_threads, .parts = (s.batch + slice - 1) / slice};
  job.x = x.as<char>();
  job.y = y.as<char>();
  job.bias = bias ? bias->as<char>() : nullptr;
  job.x_step = static_cast<std::size_t>(s.in_channels * s.in_plane()) * sizeof(float);
  job.y_step = static_cast<std::size_t>(s.out_channels * s.out_plane()) * sizeof(float);
  const Side& weights = plans->main.w;
  const std::size_t weight_bytes = Side::align(weights.wanted.get_size());
  const bool gradient = kind == Kind::kBackwardWeight;
  // A gradient goes straight into its tensor where there is one part and the layouts agree.
  const bool room = weights.differs || (gradient && job.parts > 1);
  const std::size_t w_rooms = room ? (gradient ? static_cast<std::size_t>(job.parts) : 1) : 0;
  job.scratch_step = std::max(plans->main.slice_bytes(), plans->tail ? plans->tail->slice_bytes() : 0);
  const std::size_t shared = w_rooms * weight_bytes + weights.scratchpad_bytes;
  char* base = static_cast<char*>(context.scratch(shared + static_cast<std::size_t>(job.parts) * job.scratch_step));
  char* weight_work = base + w_rooms * weight_bytes;
  job.scratch = base + shared;
  job.w = room ? base : w.as<char>();
  job.w_step = gradient && room ? weight_bytes : 0;
  if (weights.differs && !gradient) {
    const OpenMpGuard one(key.omp_threads);
    reorder(weights, w.as<char>(), job.w, true, weight_work);
  }
  run_parts(static_cast<int>(job.parts), &run_slice, &job);
  if (job.status != dnnl_success) fail("cpu: convolution: oneDNN reports status %d", static_cast<int>(job.status));
  if (gradient && room) {
    add_parts(reinterpret_cast<float*>(job.w), job.w, job.w_step, job.parts,
              static_cast<i64>(weights.wanted.get_size() / sizeof(float)));
    if (weights.differs) {
      const OpenMpGuard one(key.omp_threads);
      reorder(weights, job.w, w.as<char>(), false, weight_work);
    } else {
      std::copy_n(job.w, weights.wanted.get_size(), w.as<char>());
    }
  }
  return true;
}

}  // namespace

bool onednn_forward(KernelContext& context, const ConvShape& s, const TensorView& x, const TensorView& w,
                    const TensorView* bias, const TensorView& y) {
  return run(context, Kind::kForward, s, x, w, bias, y);
}
bool onednn_backward_input(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& w,
                           const TensorView& dx) {
  return run(context, Kind::kBackwardInput, s, dx, w, nullptr, dy);
}
bool onednn_backward_weight(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& x,
                            const TensorView& dw) {
  return run(context, Kind::kBackwardWeight, s, x, dw, nullptr, dy);
}

}  // namespace tenon::cpu
