// A stand-in of cuDNN for the calls of the plugin: plain loops on emulated memory, in stream order. Algorithm 0 of each
// kind is the fastest by its own account and is not deterministic: its sums run forwards and backwards in turn.
// It has no convolution of three dimensions in float64, so that the way without it is tried, too.
// Long: the calls of one library.
#include <cudnn.h>

#include "support/emulated_cuda/libraries/operands.h"

#include <algorithm>
#include <array>

using namespace tenon::emulated_cuda;

namespace {

constexpr std::size_t kWorkspaceBytes = 3072;  // of algorithm 1; algorithm 0 wants none

struct Tensor {
  bool set = false;
  cudnnDataType_t type{};
  std::vector<std::int64_t> sizes, strides;
  bool operator==(const Tensor&) const = default;
};
struct Convolution {
  bool set = false;
  std::vector<int> padding, stride, dilation;
  cudnnDataType_t compute{};
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

LibraryHandles<cudnnHandle_t> g_handles;
Objects<cudnnTensorDescriptor_t, Tensor> g_tensors;
Objects<cudnnFilterDescriptor_t, Tensor> g_filters;
Objects<cudnnConvolutionDescriptor_t, Convolution> g_convolutions;
Objects<cudnnActivationDescriptor_t, bool> g_activations;  // whether it was set; there is the identity only
std::array<int, 3> g_runs{};                               // of algorithm 0, by kind

Element element_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return Element::kF16;
    case CUDNN_DATA_BFLOAT16:
      return Element::kBF16;
    case CUDNN_DATA_FLOAT:
      return Element::kF32;
    case CUDNN_DATA_DOUBLE:
      return Element::kF64;
    default:
      misuse("cuDNN with data type " + std::to_string(type) + " is not emulated");
  }
}

/// x, w and y with three spatial dimensions.
struct Problem {
  Tensor x, w, y;
  Convolution conv;
};

void widen(Tensor& t) {
  while (t.sizes.size() < 5) {
    t.sizes.insert(t.sizes.begin() + 2, 1);
    t.strides.insert(t.strides.begin() + 2, 0);
  }
}
void widen(Convolution& c) {
  while (c.stride.size() < 3) {
    c.padding.insert(c.padding.begin(), 0);
    c.stride.insert(c.stride.begin(), 1);
    c.dilation.insert(c.dilation.begin(), 1);
  }
}

struct Descriptors {
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnTensorDescriptor_t y;
};

Problem problem_of(const Call& call, const Descriptors& of) {
  Problem p{g_tensors.get(call, of.x), g_filters.get(call, of.w), g_tensors.get(call, of.y),
            g_convolutions.get(call, of.conv)};
  expect(call, p.x.set && p.w.set && p.y.set && p.conv.set, "a descriptor was never set");
  const std::size_t rank = p.x.sizes.size();
  expect(call, p.w.sizes.size() == rank && p.y.sizes.size() == rank && p.conv.stride.size() == rank - 2,
         "the descriptors have several ranks");
  expect(call, p.x.type == p.w.type && p.x.type == p.y.type, "the operands have several types");
  expect(call, p.conv.compute == (p.x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
         "the convolution is computed in a type that does not fit its operands");
  expect(call, p.x.sizes[0] == p.y.sizes[0] && p.w.sizes[0] == p.y.sizes[1], "the sizes do not fit together");
  expect(call, p.w.sizes[1] * p.conv.groups == p.x.sizes[1] && p.w.sizes[0] % p.conv.groups == 0,
         "the channels do not fit the groups");
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    const std::int64_t reach = p.conv.dilation[d] * (p.w.sizes[d + 2] - 1) + 1;
    expect(call, p.y.sizes[d + 2] == (p.x.sizes[d + 2] + 2 * p.conv.padding[d] - reach) / p.conv.stride[d] + 1,
           "y has a size that the convolution does not give");
  }
  // A filter has no strides of its own: its format is that of the pictures.
  const bool last = p.w.sizes[1] > 1 && p.w.strides[1] == 1 && p.w.sizes.back() > 1;
  const auto fits = [&](const Tensor& t) { return t.sizes[1] == 1 || t.sizes.back() == 1 || t.strides[1] == 1; };
  expect(call, !last || (fits(p.x) && fits(p.y)), "the filter is channels-last and the pictures are not");
  widen(p.x);
  widen(p.w);
  widen(p.y);
  widen(p.conv);
  return p;
}

Region region(const void* pointer, const Tensor& t) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < t.sizes.size(); ++d) last += (t.sizes[d] - 1) * t.strides[d];
  return {reinterpret_cast<Address>(pointer), element_of(t.type), static_cast<std::size_t>(last) + 1};
}

using Position = std::array<std::int64_t, 5>;
std::size_t offset(const Tensor& t, const Position& at) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < 5; ++d) sum += at[d] * t.strides[d];
  return static_cast<std::size_t>(sum);
}
std::int64_t count(const Tensor& t) {
  std::int64_t all = 1;
  for (const std::int64_t size : t.sizes) all *= size;
  return all;
}
Position position(const Tensor& t, std::int64_t i) {
  Position at;
  for (std::size_t d = 5; d-- > 0; i /= t.sizes[d]) at[d] = i % t.sizes[d];
  return at;
}

enum class Kind { kForward, kInput, kWeight };

/// A place of the filter's window: how far it lies from where the window begins, and what its elements of x and w are
/// away from those of the window's first.
struct Tap {
  std::array<std::int64_t, 3> shift;
  std::int64_t x, w;
};
std::vector<Tap> taps_of(const Problem& p) {
  Tensor window = p.w;
  window.sizes[0] = 1;
  std::vector<Tap> taps;
  for (std::int64_t i = 0; i < count(window); ++i) {
    const Position k = position(window, i);
    Tap tap{.x = k[1] * p.x.strides[1], .w = static_cast<std::int64_t>(offset(p.w, k))};
    for (std::size_t d = 0; d < 3; ++d) {
      tap.shift[d] = k[d + 2] * p.conv.dilation[d] - p.conv.padding[d];
      tap.x += tap.shift[d] * p.x.strides[d + 2];
    }
    taps.push_back(tap);
  }
  return taps;
}

/// Calls visit(element of y, of x, of w) for every multiplication, in an order or in the reverse of it.
template <class F>
void each_term(const Problem& p, bool backwards, const F& visit) {
  const std::int64_t of_group = p.w.sizes[0] / p.conv.groups, in_group = p.w.sizes[1], all = count(p.y);
  std::vector<Tap> taps = taps_of(p);
  if (backwards) std::reverse(taps.begin(), taps.end());
  std::array<std::int64_t, 3> least{}, most{};
  for (std::size_t d = 0; d < 3; ++d) {
    least[d] = -p.conv.padding[d];
    most[d] = least[d] + (p.w.sizes[d + 2] - 1) * p.conv.dilation[d];
  }
  for (std::int64_t i = 0; i < all; ++i) {
    const Position o = position(p.y, backwards ? all - 1 - i : i);
    Position first{o[0], o[1] / of_group * in_group};
    for (std::size_t d = 0; d < 3; ++d) first[d + 2] = o[d + 2] * p.conv.stride[d];
    const std::size_t y = offset(p.y, o), x = offset(p.x, first);
    const std::int64_t w = o[1] * p.w.strides[0];
    bool all_inside = true;
    for (std::size_t d = 0; d < 3; ++d)
      all_inside = all_inside && first[d + 2] + least[d] >= 0 && first[d + 2] + most[d] < p.x.sizes[d + 2];
    for (const Tap& tap : taps) {
      bool inside = true;
      for (std::size_t d = 0; d < 3 && !all_inside; ++d) {
        const std::int64_t at = first[d + 2] + tap.shift[d];
        inside = inside && at >= 0 && at < p.x.sizes[d + 2];
      }
      if (inside)
        visit(y, static_cast<std::size_t>(static_cast<std::int64_t>(x) + tap.x), static_cast<std::size_t>(w + tap.w));
    }
  }
}

template <class T>
std::vector<T> values_of(const Elements& elements, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(elements[i]);
  return values;
}

template <class T>
void convolve(Machine& machine, const Context& context, const Problem& p, Kind kind, std::array<Region, 4> of,
              bool backwards, const std::string& what) {
  Elements x(machine, context, of[0], what + " (x)"), w(machine, context, of[1], what + " (w)"),
      y(machine, context, of[2], what + " (y)");
  const Elements bias(machine, context, of[3], what + " (bias)");
  Elements& output = kind == Kind::kForward ? y : kind == Kind::kInput ? x : w;
  const Tensor& shape = kind == Kind::kForward ? p.y : kind == Kind::kInput ? p.x : p.w;
  std::vector<T> sums(of[kind == Kind::kForward ? 2 : kind == Kind::kInput ? 0 : 1].count);
  const std::vector<T> xs = values_of<T>(x, of[0].count), ws = values_of<T>(w, of[1].count),
                       ys = values_of<T>(y, of[2].count);
  switch (kind) {
    case Kind::kForward:
      each_term(p, backwards, [&](std::size_t yi, std::size_t xi, std::size_t wi) { sums[yi] += xs[xi] * ws[wi]; });
      break;
    case Kind::kInput:
      each_term(p, backwards, [&](std::size_t yi, std::size_t xi, std::size_t wi) { sums[xi] += ys[yi] * ws[wi]; });
      break;
    case Kind::kWeight:
      each_term(p, backwards, [&](std::size_t yi, std::size_t xi, std::size_t wi) { sums[wi] += ys[yi] * xs[xi]; });
      break;
  }
  for (std::int64_t i = 0; i < count(shape); ++i) {
    const Position where = position(shape, i);
    const std::size_t at = offset(shape, where);
    const T added = of[3].count == 0 ? T(0) : static_cast<T>(bias[static_cast<std::size_t>(where[1])]);
    output.set(at, static_cast<double>(sums[at] + added));
  }
  output.write_back();
}

/// As the real one, which says in many ways what it has no algorithm for: here three dimensions in float64.
bool is_refused(const Problem& p) { return p.x.type == CUDNN_DATA_DOUBLE && p.w.sizes[2] > 1; }

template <class Found>
void describe(Found* found, int wanted, int* count) {
  *count = std::min(wanted, 2);
  for (int i = 0; i < *count; ++i) {
    found[i] = {};
    found[i].algo = static_cast<decltype(found[i].algo)>(i);
    found[i].status = CUDNN_STATUS_SUCCESS;
    found[i].time = static_cast<float>(i + 1);
    found[i].memory = i == 0 ? 0 : kWorkspaceBytes;
    found[i].determinism = i == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    found[i].mathType = CUDNN_DEFAULT_MATH;
  }
}

/// A measurement waits for the device.
void expect_no_capture(Call& call, cudnnHandle_t handle) {
  if (call.stream(g_handles.get(call, handle).stream).capture != nullptr)
    misuse(std::string(call.name()) + " was called while its stream is captured");
}

/// Which algorithms there are.
template <class Found>
cudnnStatus_t ask(Call& call, cudnnHandle_t handle, const Descriptors& of, int wanted, int* count, Found* found) {
  g_handles.get(call, handle);
  if (is_refused(problem_of(call, of))) return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  describe(found, wanted, count);
  return CUDNN_STATUS_SUCCESS;
}

/// The same, by trying them.
template <class Found>
cudnnStatus_t measure(Call& call, cudnnHandle_t handle, const Descriptors& of, int wanted, int* count, Found* found,
                      const void* workspace, std::size_t bytes) {
  expect_no_capture(call, handle);
  if (is_refused(problem_of(call, of))) return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  expect_workspace(call, call.machine(), workspace, bytes, 0);
  describe(found, wanted, count);
  return CUDNN_STATUS_SUCCESS;
}

struct Arguments {
  const void *alpha, *x, *w, *y, *beta;
  int algorithm;
  void* workspace;
  std::size_t workspace_bytes;
  const void* bias = nullptr;
};

cudnnStatus_t run(Call& call, cudnnHandle_t handle, const Problem& p, Kind kind, const Arguments& a) {
  if (call.refused()) return CUDNN_STATUS_EXECUTION_FAILED;
  Machine& machine = call.machine();
  Stream& stream = call.stream(g_handles.get(call, handle).stream);
  g_handles.expect_in_context(call, handle, stream);
  expect_host(call, machine, a.alpha, "alpha");
  expect_host(call, machine, a.beta, "beta");
  const bool wide = p.x.type == CUDNN_DATA_DOUBLE;
  const auto number = [&](const void* at) {
    return wide ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
  };
  expect(call, number(a.alpha) == 1 && number(a.beta) == 0, "alpha and beta other than 1 and 0 are not emulated");
  expect(call, a.algorithm == 0 || a.algorithm == 1, "the algorithm is none that was found");
  expect_device(call, machine, a.x, size_of(element_of(p.x.type)), "x");
  expect_device(call, machine, a.w, size_of(element_of(p.x.type)), "w");
  expect_device(call, machine, a.y, size_of(element_of(p.x.type)), "y");
  expect_workspace(call, machine, a.workspace, a.workspace_bytes, a.algorithm == 0 ? 0 : kWorkspaceBytes);
  std::array<Region, 4> of{region(a.x, p.x), region(a.w, p.w), region(a.y, p.y)};
  if (a.bias != nullptr) {
    expect_device(call, machine, a.bias, size_of(of[2].element), "the bias");
    of[3] = {reinterpret_cast<Address>(a.bias), of[2].element, static_cast<std::size_t>(p.y.sizes[1])};
  }
  const bool backwards = a.algorithm == 0 && ++g_runs.at(static_cast<std::size_t>(kind)) % 2 == 0;
  Work work{
      .run = [&machine, context = stream.context, p, kind, a, of, backwards, wide, what = std::string(call.name())] {
        use_workspace(machine, *context, a.workspace, a.workspace_bytes, what);
        if (wide) {
          convolve<double>(machine, *context, p, kind, of, backwards, what);
        } else {
          convolve<float>(machine, *context, p, kind, of, backwards, what);
        }
      }};
  for (const Region& one : of) work.touches.push_back({one.address, one.bytes()});
  work.touches.push_back({reinterpret_cast<Address>(a.workspace), a.workspace_bytes, Work::Use::kWrites});
  return call.queue(stream, std::move(work)) == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

Tensor tensor(const Call& call, cudnnDataType_t type, int rank, const int* sizes, const int* strides) {
  expect(call, rank >= 4 && rank <= 8, "a tensor needs at least four dimensions, and has " + std::to_string(rank));
  Tensor made{.set = true, .type = type, .sizes{sizes, sizes + rank}, .strides{strides, strides + rank}};
  for (const std::int64_t size : made.sizes) expect(call, size > 0, "a size is not above 0");
  element_of(type);
  return made;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  Call call("cudnnCreate");
  return g_handles.make_in_context(call, handle) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Call call("cudnnDestroy");
  g_handles.destroy_in_context(call, handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Call call("cudnnSetStream");
  call.stream(stream);
  g_handles.get(call, handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the stand-in"; }

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  Call call("cudnnCreateTensorDescriptor", Call::Needs::kNothing);
  *made = g_tensors.make({});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  Call call("cudnnDestroyTensorDescriptor", Call::Needs::kNothing);
  g_tensors.destroy(call, descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int rank,
                                         const int sizes[], const int strides[]) {
  Call call("cudnnSetTensorNdDescriptor", Call::Needs::kNothing);
  g_tensors.get(call, descriptor) = tensor(call, type, rank, sizes, strides);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  Call call("cudnnCreateFilterDescriptor", Call::Needs::kNothing);
  *made = g_filters.make({});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  Call call("cudnnDestroyFilterDescriptor", Call::Needs::kNothing);
  g_filters.destroy(call, descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int sizes[]) {
  Call call("cudnnSetFilterNdDescriptor", Call::Needs::kNothing);
  std::vector<int> strides(static_cast<std::size_t>(rank));
  int expected = 1;
  const auto place = [&](int d) {
    strides[static_cast<std::size_t>(d)] = expected;
    expected *= sizes[d];
  };
  expect(call, format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC, "this format is not emulated");
  if (format == CUDNN_TENSOR_NHWC) place(1);
  for (int d = rank - 1; d >= 2; --d) place(d);
  if (format == CUDNN_TENSOR_NCHW) place(1);
  place(0);
  g_filters.get(call, descriptor) = tensor(call, type, rank, sizes, strides.data());
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  Call call("cudnnCreateConvolutionDescriptor", Call::Needs::kNothing);
  *made = g_convolutions.make({});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  Call call("cudnnDestroyConvolutionDescriptor", Call::Needs::kNothing);
  g_convolutions.destroy(call, descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int spatial, const int padding[],
                                              const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  Call call("cudnnSetConvolutionNdDescriptor", Call::Needs::kNothing);
  expect(call, spatial >= 2 && spatial <= 3, "a convolution needs two or three spatial dimensions");
  expect(call, mode == CUDNN_CROSS_CORRELATION, "this mode is not emulated");
  Convolution& c = g_convolutions.get(call, descriptor);
  c.set = true;
  c.padding = {padding, padding + spatial};
  c.stride = {stride, stride + spatial};
  c.dilation = {dilation, dilation + spatial};
  c.compute = compute;
  for (int d = 0; d < spatial; ++d)
    expect(call, padding[d] >= 0 && stride[d] > 0 && dilation[d] > 0, "a padding, stride or dilation is out of range");
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  Call call("cudnnSetConvolutionGroupCount", Call::Needs::kNothing);
  g_convolutions.get(call, descriptor).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t math) {
  Call call("cudnnSetConvolutionMathType", Call::Needs::kNothing);
  g_convolutions.get(call, descriptor).math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* made) {
  Call call("cudnnCreateActivationDescriptor", Call::Needs::kNothing);
  *made = g_activations.make(false);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor) {
  Call call("cudnnDestroyActivationDescriptor", Call::Needs::kNothing);
  g_activations.destroy(call, descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double) {
  Call call("cudnnSetActivationDescriptor", Call::Needs::kNothing);
  expect(call, mode == CUDNN_ACTIVATION_IDENTITY, "this activation is not emulated");
  g_activations.get(call, descriptor) = true;
  return CUDNN_STATUS_SUCCESS;
}

// ---- the three kinds: which algorithms, how fast, and the convolution itself ----------------------------------------

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                     cudnnTensorDescriptor_t y, int wanted, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  Call call("cudnnGetConvolutionForwardAlgorithm_v7");
  return ask(call, handle, {x, w, conv, y}, wanted, found, results);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x, const void*,
                                                     cudnnFilterDescriptor_t w, const void*,
                                                     cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                                                     void*, int wanted, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results, void* workspace,
                                                     std::size_t bytes) {
  Call call("cudnnFindConvolutionForwardAlgorithmEx");
  return measure(call, handle, {x, w, conv, y}, wanted, found, results, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* xp, cudnnFilterDescriptor_t w, const void* wp,
                                      cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta, cudnnTensorDescriptor_t y,
                                      void* yp) {
  Call call("cudnnConvolutionForward");
  return run(call, handle, problem_of(call, {x, w, conv, y}), Kind::kForward,
             {alpha, xp, wp, yp, beta, algorithm, workspace, bytes});
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x, const void* xp, cudnnFilterDescriptor_t w,
    const void* wp, cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
    std::size_t bytes, const void* beta, cudnnTensorDescriptor_t z, const void* zp, cudnnTensorDescriptor_t bias,
    const void* bias_pointer, cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y, void* yp) {
  Call call("cudnnConvolutionBiasActivationForward");
  const Problem p = problem_of(call, {x, w, conv, y});
  expect(call, algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
         "only one algorithm goes with the identity as activation");
  expect(call, g_activations.get(call, activation), "the activation was never set");
  expect(call, zp == yp && g_tensors.get(call, z) == g_tensors.get(call, y), "z other than y is not emulated");
  const Tensor& added = g_tensors.get(call, bias);
  expect(call, added.set && added.type == p.y.type && added.sizes.size() > 1 && added.sizes[1] == p.y.sizes[1],
         "the bias does not fit y");
  expect_device(call, call.machine(), bias_pointer, 1, "the bias");
  return run(call, handle, p, Kind::kForward, {alpha, xp, wp, yp, beta, algorithm, workspace, bytes, bias_pointer});
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t conv,
                                                          cudnnTensorDescriptor_t x, int wanted, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
  Call call("cudnnGetConvolutionBackwardDataAlgorithm_v7");
  return ask(call, handle, {x, w, conv, y}, wanted, found, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle, cudnnFilterDescriptor_t w, const void*,
                                                          cudnnTensorDescriptor_t y, const void*,
                                                          cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x,
                                                          void*, int wanted, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace,
                                                          std::size_t bytes) {
  Call call("cudnnFindConvolutionBackwardDataAlgorithmEx");
  return measure(call, handle, {x, w, conv, y}, wanted, found, results, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* wp, cudnnTensorDescriptor_t y, const void* yp,
                                           cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* workspace, std::size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t x, void* xp) {
  Call call("cudnnConvolutionBackwardData");
  return run(call, handle, problem_of(call, {x, w, conv, y}), Kind::kInput,
             {alpha, xp, wp, yp, beta, algorithm, workspace, bytes});
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y,
                                                            cudnnConvolutionDescriptor_t conv,
                                                            cudnnFilterDescriptor_t w, int wanted, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  Call call("cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  return ask(call, handle, {x, w, conv, y}, wanted, found, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            const void*, cudnnTensorDescriptor_t y, const void*,
                                                            cudnnConvolutionDescriptor_t conv,
                                                            cudnnFilterDescriptor_t w, void*, int wanted, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results,
                                                            void* workspace, std::size_t bytes) {
  Call call("cudnnFindConvolutionBackwardFilterAlgorithmEx");
  return measure(call, handle, {x, w, conv, y}, wanted, found, results, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                             const void* xp, cudnnTensorDescriptor_t y, const void* yp,
                                             cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, cudnnFilterDescriptor_t w, void* wp) {
  Call call("cudnnConvolutionBackwardFilter");
  return run(call, handle, problem_of(call, {x, w, conv, y}), Kind::kWeight,
             {alpha, xp, wp, yp, beta, algorithm, workspace, bytes});
}

/// C += A, where A has one number for each channel.
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t a_desc, const void* a,
                             const void* beta, cudnnTensorDescriptor_t c_desc, void* c) {
  Call call("cudnnAddTensor");
  Machine& machine = call.machine();
  Tensor bias = g_tensors.get(call, a_desc), sum = g_tensors.get(call, c_desc);
  expect(call, bias.set && sum.set && bias.type == sum.type && bias.sizes.size() == sum.sizes.size(),
         "the tensors do not fit together");
  widen(bias);
  widen(sum);
  for (const std::size_t d : {0, 2, 3, 4}) expect(call, bias.sizes[d] == 1, "anything but a bias is not emulated");
  expect(call, bias.sizes[1] == sum.sizes[1], "the bias has another number of channels");
  expect_host(call, machine, alpha, "alpha");
  expect_host(call, machine, beta, "beta");
  expect_device(call, machine, a, size_of(element_of(bias.type)), "A");
  expect_device(call, machine, c, size_of(element_of(sum.type)), "C");
  Stream& stream = call.stream(g_handles.get(call, handle).stream);
  const Region from = region(a, bias), to = region(c, sum);
  Work work{.run = [&machine, context = stream.context, bias, sum, from, to] {
    const Elements numbers(machine, *context, from, "cudnnAddTensor (A)");
    Elements out(machine, *context, to, "cudnnAddTensor (C)");
    for (std::int64_t i = 0; i < count(sum); ++i) {
      const Position at = position(sum, i);
      out.set(offset(sum, at), out[offset(sum, at)] + numbers[static_cast<std::size_t>(at[1] * bias.strides[1])]);
    }
    out.write_back();
  }};
  work.touches = {{from.address, from.bytes(), Work::Use::kReads}, {to.address, to.bytes(), Work::Use::kWrites}};
  return call.queue(stream, std::move(work)) == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
