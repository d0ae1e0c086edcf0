// Convolutions by cuDNN's call for each. Which algorithm, its heuristics say once for each problem, or with the switch
// cudnn_benchmark a measurement of all of them. Operands have one layout: y's or, of gradients, the output's.
#include "handles.h"
#include "kernels/driver_of.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"
#include "kernels/libraries/cudnn.h"
#include "kernels/nn/convolution.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <type_traits>

namespace tenon::cuda {

#if TENON_WITH_CUDNN

namespace {

// An algorithm that wants more is not taken, unless all do.
constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;
constexpr int kMostAlgorithms = 10;

cudnnDataType_t cudnn_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return CUDNN_DATA_HALF;
    case Dtype::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    case Dtype::kFloat32:
      return CUDNN_DATA_FLOAT;
    default:
      return CUDNN_DATA_DOUBLE;
  }
}

// Says in one of several ways that it has no such convolution.
bool is_refusal(cudnnStatus_t status) { return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED; }

using Strides = std::array<std::int64_t, 5>;

Strides strides_of(const TensorView& like, bool channels_last) {
  Strides strides{};
  std::int64_t expected = 1;
  const auto place = [&](int d) {
    strides[static_cast<std::size_t>(d)] = expected;
    expected *= like.sizes[d];
  };
  if (channels_last) place(1);
  for (int d = like.rank - 1; d >= 2; --d) place(d);
  if (!channels_last) place(1);
  place(0);
  return strides;
}

bool lies(const TensorView& view, bool channels_last) {
  const Strides wanted = strides_of(view, channels_last);
  for (int d = 0; d < view.rank; ++d) {
    if (view.sizes[d] != 1 && view.strides[d] != wanted[static_cast<std::size_t>(d)]) return false;
  }
  return true;
}

/// An operand in the layout that all of them have: itself, or in scratch.
class Laid {
 public:
  Laid(KernelContext& context, const TensorView& given, bool channels_last, bool read)
      : view(given), strides_(strides_of(given, channels_last)), moved_(!lies(given, channels_last)) {
    view.strides = strides_.data();
    if (!moved_) return;
    view.data = context.scratch(static_cast<std::size_t>(given.element_count()) * size_of(given.dtype));
    if (read) copy_view(context, view, given);
  }
  Laid(const Laid&) = delete;
  Laid& operator=(const Laid&) = delete;
  /// Of an output: to where it belongs.
  void finish(KernelContext& context, const TensorView& given) const {
    if (moved_) copy_view(context, given, view);
  }
  TensorView view;

 private:
  Strides strides_;
  bool moved_;
};

template <class T>
using OfCudnn = std::unique_ptr<std::remove_pointer_t<T>, cudnnStatus_t (*)(T)>;

template <class T>
OfCudnn<T> made(cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)) {
  T descriptor = nullptr;
  cudnn().check(create(&descriptor), "creating a descriptor");
  return {descriptor, destroy};
}

// cuDNN has two spatial dimensions at least: those of one get a height of 1.
struct Dimensions {
  int rank = 0;
  int sizes[5], strides[5];
  Dimensions(const TensorView& v) {
    for (int d = 0; d < v.rank; ++d) {
      if (v.rank == 3 && d == 2) add(1, static_cast<int>(v.strides[2] * v.sizes[2]));
      add(static_cast<int>(v.sizes[d]), static_cast<int>(v.strides[d]));
    }
  }
  void add(int size, int stride) {
    sizes[rank] = size;
    strides[rank++] = stride;
  }
};

template <class T>
struct Operand {
  OfCudnn<T> descriptor;
  void* data = nullptr;
  T get() const { return descriptor.get(); }
};

struct CudnnProblem {
  Operand<cudnnTensorDescriptor_t> x{made(cudnn().tensor_create, cudnn().tensor_destroy)};
  Operand<cudnnTensorDescriptor_t> y{made(cudnn().tensor_create, cudnn().tensor_destroy)};
  Operand<cudnnFilterDescriptor_t> w{made(cudnn().filter_create, cudnn().filter_destroy)};
  OfCudnn<cudnnConvolutionDescriptor_t> conv = made(cudnn().convolution_create, cudnn().convolution_destroy);

  /// False: cuDNN refuses such operands.
  bool describe(const Convolution& c, bool channels_last, cudnnMathType_t math) {
    const Cudnn& library = cudnn();
    const cudnnDataType_t type = cudnn_type(c.y.dtype);
    const Dimensions dx(c.x), dw(c.w), dy(c.y);
    int padding[3] = {0, 0, 0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    const int spatial = dx.rank - 2, shift = spatial - c.attributes.spatial;
    for (int d = 0; d < c.attributes.spatial; ++d) {
      padding[d + shift] = static_cast<int>(c.attributes.padding[d]);
      stride[d + shift] = static_cast<int>(c.attributes.stride[d]);
      dilation[d + shift] = static_cast<int>(c.attributes.dilation[d]);
    }
    x.data = c.x.data;
    w.data = c.w.data;
    y.data = c.y.data;
    const std::array statuses{
        library.tensor_set(x.get(), type, dx.rank, dx.sizes, dx.strides),
        library.tensor_set(y.get(), type, dy.rank, dy.sizes, dy.strides),
        library.filter_set(w.get(), type, channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, dw.rank, dw.sizes),
        library.convolution_set(conv.get(), spatial, padding, stride, dilation, CUDNN_CROSS_CORRELATION,
                                type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
        library.set_groups(conv.get(), static_cast<int>(c.attributes.groups)),
        library.set_math(conv.get(), math)};
    for (const cudnnStatus_t status : statuses) {
      if (is_refusal(status)) return false;
      library.check(status, "describing a convolution");
    }
    return true;
  }
};

struct Factors {
  float one32 = 1, zero32 = 0;
  double one64 = 1, zero64 = 0;
  bool wide;
  const void* one() const { return wide ? static_cast<const void*>(&one64) : &one32; }
  const void* zero() const { return wide ? static_cast<const void*>(&zero64) : &zero32; }
};

struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Without memory for it nothing is measured.
Workspace room_to_measure(KernelContext& context) {
  try {
    return {context.scratch(kMostWorkspace), kMostWorkspace};
  } catch (const OutOfMemory&) {
    return {};
  }
}

// The three kinds: the same questions by functions of their own, and the operands in another order, of which the last
// one is computed.
struct Forward {
  using Found = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr auto kAsk = &Cudnn::forward_ask;
  static constexpr auto kMeasure = &Cudnn::forward_measure;
  static constexpr auto kRun = &Cudnn::forward;
  static auto operands(const CudnnProblem& p) { return std::tie(p.x, p.w, p.y); }
};
struct BackwardInput {
  using Found = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr auto kAsk = &Cudnn::input_ask;
  static constexpr auto kMeasure = &Cudnn::input_measure;
  static constexpr auto kRun = &Cudnn::input;
  static auto operands(const CudnnProblem& p) { return std::tie(p.w, p.y, p.x); }
};
struct BackwardWeight {
  using Found = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr auto kAsk = &Cudnn::weight_ask;
  static constexpr auto kMeasure = &Cudnn::weight_measure;
  static constexpr auto kRun = &Cudnn::weight;
  static auto operands(const CudnnProblem& p) { return std::tie(p.x, p.y, p.w); }
};

template <class Kind>
cudnnStatus_t ask(cudnnHandle_t handle, const CudnnProblem& p, int* count, typename Kind::Found* found) {
  const auto& [a, b, result] = Kind::operands(p);
  return (cudnn().*Kind::kAsk)(handle, a.get(), b.get(), p.conv.get(), result.get(), kMostAlgorithms, count, found);
}

template <class Kind>
cudnnStatus_t measure(cudnnHandle_t handle, const CudnnProblem& p, int* count, typename Kind::Found* found,
                      const Workspace& room) {
  const auto& [a, b, result] = Kind::operands(p);
  return (cudnn().*Kind::kMeasure)(handle, a.get(), a.data, b.get(), b.data, p.conv.get(), result.get(), result.data,
                                   kMostAlgorithms, count, found, room.data, room.bytes);
}

template <class Kind>
cudnnStatus_t run(cudnnHandle_t handle, const CudnnProblem& p, int algorithm, const Workspace& room, const Factors& f) {
  const auto& [a, b, result] = Kind::operands(p);
  return (cudnn().*Kind::kRun)(handle, f.one(), a.get(), a.data, b.get(), b.data, p.conv.get(),
                               static_cast<decltype(Kind::Found::algo)>(algorithm), room.data, room.bytes, f.zero(),
                               result.get(), result.data);
}

/// The first, hence fastest, that is allowed; of those that want much workspace, the one that wants least.
/// `preferred`, where it is among them, is taken before any other.
template <class Found>
ConvolutionChoice chosen(const Found* found, int count, bool deterministic, int preferred) {
  const Found* best = nullptr;
  for (const Found* one = found; one != found + count; ++one) {
    if (one->status != CUDNN_STATUS_SUCCESS) continue;
    if (deterministic && one->determinism != CUDNN_DETERMINISTIC) continue;
    if (best == nullptr || one->algo == preferred || (best->memory > kMostWorkspace && one->memory < best->memory))
      best = one;
    if (one->algo == preferred) break;
  }
  if (best == nullptr) return {};
  return {.possible = true, .algorithm = best->algo, .math = best->mathType, .workspace_bytes = best->memory};
}

// The algorithm that adds a bias before it rounds.
constexpr int kFusing = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

OfCudnn<cudnnTensorDescriptor_t> bias_descriptor(const Convolution& c) {
  auto bias = made(cudnn().tensor_create, cudnn().tensor_destroy);
  const int channels = static_cast<int>(c.bias.sizes[0]);
  const int sizes[5] = {1, channels, 1, 1, 1}, strides[5] = {channels, 1, 1, 1, 1};
  cudnn().check(cudnn().tensor_set(bias.get(), cudnn_type(c.bias.dtype), std::max(c.y.rank, 4), sizes, strides),
                "cudnnSetTensorNdDescriptor");
  return bias;
}

/// y = x * w + bias, rounded once. False: cuDNN does not fuse these.
bool run_with_bias(cudnnHandle_t handle, const Convolution& c, const CudnnProblem& p, const Workspace& room,
                   const Factors& f) {
  const Cudnn& library = cudnn();
  const auto bias = bias_descriptor(c);
  const auto identity = made(library.activation_create, library.activation_destroy);
  library.check(library.activation_set(identity.get(), CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0),
                "cudnnSetActivationDescriptor");
  const cudnnStatus_t status =
      library.forward_fused(handle, f.one(), p.x.get(), p.x.data, p.w.get(), p.w.data, p.conv.get(),
                            static_cast<cudnnConvolutionFwdAlgo_t>(kFusing), room.data, room.bytes, f.zero(), p.y.get(),
                            p.y.data, bias.get(), c.bias.data, identity.get(), p.y.get(), p.y.data);
  if (is_refusal(status)) return false;
  library.check(status, "cudnnConvolutionBiasActivationForward");
  return true;
}

ProblemKey key_of(const Convolution& c, bool channels_last, bool measured) {
  ProblemKey key;
  key.add({static_cast<std::int64_t>(c.kind), static_cast<std::int64_t>(c.y.dtype), channels_last, measured,
           c.bias.defined(), c.attributes.spatial, c.attributes.groups});
  for (const TensorView* view : {&c.x, &c.w, &c.y}) {
    for (int d = 0; d < view->rank; ++d) key.add(view->sizes[d]);
  }
  for (int d = 0; d < c.attributes.spatial; ++d)
    key.add({c.attributes.padding[d], c.attributes.stride[d], c.attributes.dilation[d]});
  return key;
}

template <class Kind>
bool run_cudnn(KernelContext& context, const Convolution& c, bool channels_last) {
  const Cudnn& library = cudnn();
  CudaDriver& driver = driver_of(context);
  const Switches& switches = driver.switches();
  const ContextGuard guard(driver.context());
  const LibraryHandles::Borrowed handle = driver.libraries().cudnn();
  library.check(library.set_stream(handle.get(), native(context.stream())), "cudnnSetStream");
  const bool exact = c.y.dtype == Dtype::kFloat32 && !switches.cudnn_allow_tf32;
  CudnnProblem problem;
  if (!problem.describe(c, channels_last, exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH)) return false;

  // A measurement waits, and computes.
  const bool measured = switches.cudnn_benchmark && !c.rehearsed && !driver.capturing(context.stream());
  const ConvolutionChoice choice = driver.libraries().convolutions.get(key_of(c, channels_last, measured), [&] {
    typename Kind::Found found[kMostAlgorithms];
    int count = 0;
    const Workspace room = measured ? room_to_measure(context) : Workspace{};
    const cudnnStatus_t status = room.data != nullptr ? measure<Kind>(handle.get(), problem, &count, found, room)
                                                      : ask<Kind>(handle.get(), problem, &count, found);
    if (is_refusal(status)) return ConvolutionChoice{};
    library.check(status, "asking for an algorithm");
    const bool fuses = c.bias.defined() && size_of(c.y.dtype) < 4;  // reduced types are rounded once
    return chosen(found, count, switches.cudnn_deterministic, fuses ? kFusing : -1);
  });
  if (!choice.possible) return false;
  if (!exact)
    library.check(library.set_math(problem.conv.get(), static_cast<cudnnMathType_t>(choice.math)),
                  "cudnnSetConvolutionMathType");
  const Workspace room{context.scratch(choice.workspace_bytes), choice.workspace_bytes};
  if (c.rehearsed) return true;
  const Factors factors{.wide = c.y.dtype == Dtype::kFloat64};
  const bool biased = c.bias.defined();
  if (biased && choice.algorithm == kFusing && run_with_bias(handle.get(), c, problem, room, factors)) return true;
  library.check(run<Kind>(handle.get(), problem, choice.algorithm, room, factors), "a convolution");
  if (biased) {
    library.check(library.add(handle.get(), factors.one(), bias_descriptor(c).get(), c.bias.data, factors.one(),
                              problem.y.get(), c.y.data),
                  "cudnnAddTensor");
  }
  return true;
}

bool fits(const Convolution& c) {
  for (const TensorView* view : {&c.x, &c.w, &c.y}) {
    if (view->element_count() == 0 || view->element_count() > 0x7fffffff) return false;
  }
  return !c.bias.defined() || c.bias.is_contiguous();
}

}  // namespace

bool cudnn_convolution(KernelContext& context, const Convolution& given) {
  if (!fits(given) || !cudnn().usable) return false;
  const TensorView& output = given.output();
  const TensorView& wide = given.kind == ConvKind::kBackwardWeight ? given.x : output;  // weights lie either way
  const bool channels_last = !lies(wide, false) && lies(wide, true);
  const auto is_output = [&](const TensorView& view) { return &view == &output; };
  const auto is_read = [&](const TensorView& view) { return !is_output(view) && !given.rehearsed; };
  const Laid x(context, given.x, channels_last, is_read(given.x)), w(context, given.w, channels_last, is_read(given.w)),
      y(context, given.y, channels_last, is_read(given.y));
  Convolution c = given;
  c.x = x.view;
  c.w = w.view;
  c.y = y.view;
  const bool done = given.kind == ConvKind::kForward         ? run_cudnn<Forward>(context, c, channels_last)
                    : given.kind == ConvKind::kBackwardInput ? run_cudnn<BackwardInput>(context, c, channels_last)
                                                             : run_cudnn<BackwardWeight>(context, c, channels_last);
  if (!done) return false;
  if (given.rehearsed) return true;
  for (const auto& [laid, view] : {std::pair(&x, &given.x), std::pair(&w, &given.w), std::pair(&y, &given.y)}) {
    if (is_output(*view)) laid->finish(context, *view);
  }
  return true;
}

#else

bool cudnn_convolution(KernelContext&, const Convolution&) { return false; }

#endif

}  // namespace tenon::cuda
