// Speed of the cpu backend's kernels on the shapes of the models that the experiments train. Rows have the same names
// as those of peer_kernels.py, which times PyTorch on the same work. TENON_BENCH_THREADS sets the number of threads
// (1).
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/optimizer.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/plugin/backend_plugin.h>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../plugins/cpu/backend.h"
#include "../../plugins/cpu/kernels/kernels.h"
#include "../../plugins/cpu/thread_pool.h"

namespace {

using namespace tenon;
using Sizes = std::vector<std::int64_t>;

std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all;
  if (all.empty()) {
    cpu::add_all_kernels(
        {.add = [](void* host, const char* name,
                   Kernel kernel) { (*static_cast<std::map<std::string, Kernel>*>(host))[name] = kernel; },
         .host = &all},
        cpu::widest_isa());
  }
  return all;
}

// Scratch that is kept from call to call, as a caching allocator would.
class Context final : public KernelContext {
 public:
  StreamRef stream() const override { return {}; }
  DeviceDriver& driver() const override { std::abort(); }
  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    if (next_ == pieces_.size()) pieces_.emplace_back();
    std::vector<char>& piece = pieces_[next_++];
    if (piece.size() < bytes + 64) piece.resize(bytes + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(piece.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }
  void reset() { next_ = 0; }

 private:
  std::vector<std::vector<char>> pieces_;
  std::size_t next_ = 0;
};

struct Tensor {
  Sizes sizes, strides;
  std::shared_ptr<std::vector<char>> memory;
  TensorView view;

  Tensor() { view.rank = -1; }
  Tensor(Sizes of, Dtype dtype = Dtype::kFloat32, bool transposed = false)
      : sizes(std::move(of)), strides(sizes.size()) {
    std::int64_t count = 1;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      strides[d] = count;
      count *= sizes[d];
    }
    if (transposed) {
      strides[sizes.size() - 2] = 1;
      strides[sizes.size() - 1] = sizes[sizes.size() - 2];
    }
    memory = std::make_shared<std::vector<char>>(static_cast<std::size_t>(count) * size_of(dtype) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory->data());
    view.data = reinterpret_cast<void*>((address + 63) / 64 * 64);
    view.rank = static_cast<std::int32_t>(sizes.size());
    view.dtype = dtype;
    for (std::int64_t i = 0; dtype == Dtype::kFloat32 && i < count; ++i) {
      view.as<float>()[i] = static_cast<float>((i * 2654435761u >> 8) % 1000) * 0.002f - 1;
    }
  }
  Tensor expand(Sizes to) const {
    Tensor t = *this;
    t.strides.assign(to.size(), 0);
    for (std::size_t d = 0; d < sizes.size(); ++d) t.strides[to.size() - sizes.size() + d] = strides[d];
    t.sizes = std::move(to);
    t.view.rank = static_cast<std::int32_t>(t.sizes.size());
    return t;
  }
  TensorView get() const {
    TensorView v = view;
    v.sizes = sizes.data();
    v.strides = strides.data();
    return v;
  }
};

template <class Attributes = int>
void row(const std::string& label, const std::string& kernel, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
         Attributes attributes = {}) {
  benchmark::RegisterBenchmark(label.c_str(), [=](benchmark::State& state) {
    std::vector<TensorView> out, in;
    for (const Tensor& t : outputs) out.push_back(t.get());
    for (const Tensor& t : inputs) in.push_back(t.get());
    Context context;
    const void* given = std::is_same_v<Attributes, int> ? nullptr : static_cast<const void*>(&attributes);
    const Kernel run = kernels().at(kernel);
    for (auto _ : state) {
      context.reset();
      run(context, out, in, given);
    }
  })->Unit(benchmark::kMicrosecond);
}

void conv_rows(const std::string& label, Sizes x, Sizes w, std::int64_t stride, std::int64_t padding) {
  ConvAttributes a;
  Sizes y{x[0], w[0]};
  for (std::size_t d = 0; d < 2; ++d) {
    a.stride[d] = stride;
    a.padding[d] = padding;
    y.push_back((x[d + 2] + 2 * padding - w[d + 2]) / stride + 1);
  }
  row("conv_forward/" + label, "conv", {Tensor(y)}, {Tensor(x), Tensor(w), Tensor({w[0]})}, a);
  row("conv_backward_input/" + label, "conv_backward_input", {Tensor(x)}, {Tensor(y), Tensor(w)}, a);
  row("conv_backward_weight/" + label, "conv_backward_weight", {Tensor(w)}, {Tensor(y), Tensor(x)}, a);
}

/// Between 0.01 and 0.99, where every function is finite.
Tensor fractions(const Sizes& sizes) {
  Tensor t(sizes);
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  for (std::int64_t i = 0; i < count; ++i) t.view.as<float>()[i] = t.view.as<float>()[i] * 0.49f + 0.5f;
  return t;
}

void function_rows() {
  const Sizes sizes{65536};
  for (const char* name : {"sin",   "cos",    "tan",    "asin",    "acos",    "atan",        "sinh",  "cosh",  "asinh",
                           "atanh", "exp",    "exp2",   "log",     "log2",    "log10",       "log1p", "expm1", "erf",
                           "erfc",  "erfinv", "lgamma", "digamma", "sigmoid", "log_sigmoid", "mish",  "sinc"})
    row(std::string("function/") + name, name, {Tensor(sizes)}, {fractions(sizes)});
  for (const char* name : {"pow", "atan2", "hypot", "fmod", "remainder", "floor_divide", "logaddexp"})
    row(std::string("function/") + name, name, {Tensor(sizes)}, {fractions(sizes), fractions(sizes)});
}

void register_rows() {
  function_rows();
  const Sizes one{1}, small{128, 128}, large{1024, 1024};
  row("add/1", "add", {Tensor(one)}, {Tensor(one), Tensor(one)});
  for (const auto& [label, sizes] : {std::pair{"16K", small}, {"1M", large}}) {
    const std::string at = std::string("/") + label;
    row("add" + at, "add", {Tensor(sizes)}, {Tensor(sizes), Tensor(sizes)});
    row("add_bias" + at, "add", {Tensor(sizes)}, {Tensor(sizes), Tensor({sizes[1]}).expand(sizes)});
    BinaryAttributes half;
    half.scalar = {0.5, 0};
    half.scalar_side = ScalarSide::kRight;
    row("mul_scalar" + at, "mul", {Tensor(sizes)}, {Tensor(sizes), Tensor()}, half);
    row("relu" + at, "relu", {Tensor(sizes)}, {Tensor(sizes)});
    row("exp" + at, "exp", {Tensor(sizes)}, {Tensor(sizes)});
    row("gelu" + at, "gelu", {Tensor(sizes)}, {Tensor(sizes)});
    row("gelu_backward" + at, "gelu_backward", {Tensor(sizes)}, {Tensor(sizes), Tensor(sizes)});
    row("tanh" + at, "tanh", {Tensor(sizes)}, {Tensor(sizes)});
    row("sum" + at, "sum", {Tensor({1, 1})}, {Tensor(sizes)});
    row("sum_rows" + at, "sum", {Tensor({1, sizes[1]})}, {Tensor(sizes)});
    row("sum_columns" + at, "sum", {Tensor({sizes[0], 1})}, {Tensor(sizes)});
    row("transpose" + at, "copy", {Tensor(sizes)}, {Tensor(sizes, Dtype::kFloat32, true)});
    row("softmax" + at, "softmax", {Tensor(sizes)}, {Tensor(sizes)}, DimAttributes{1});
    row("softmax_backward" + at, "softmax_backward", {Tensor(sizes)}, {Tensor(sizes), Tensor(sizes)}, DimAttributes{1});
    row("layer_norm" + at, "layer_norm", {Tensor(sizes), Tensor({sizes[0]}), Tensor({sizes[0]})},
        {Tensor(sizes), Tensor({sizes[1]}), Tensor({sizes[1]})}, LayerNormAttributes{sizes[1], 1e-5});
    row("layer_norm_backward" + at, "layer_norm_backward", {Tensor(sizes), Tensor({sizes[1]}), Tensor({sizes[1]})},
        {Tensor(sizes), Tensor(sizes), Tensor({sizes[0]}), Tensor({sizes[0]}), Tensor({sizes[1]})},
        LayerNormAttributes{sizes[1], 1e-5});
    row("normal" + at, "normal", {Tensor(sizes)}, {}, RandomAttributes{.seed = 1, .a = 0, .b = 1});
    row("bernoulli" + at, "bernoulli", {Tensor(sizes)}, {Tensor()}, RandomAttributes{.seed = 1, .a = 0.9});
    row("adam" + at, "adam_step", {Tensor(sizes), Tensor(sizes), Tensor(sizes), Tensor()}, {Tensor(sizes)},
        AdamAttributes{.step = 5});
    row("sgd" + at, "sgd_step", {Tensor(sizes), Tensor(sizes)}, {Tensor(sizes)}, SgdAttributes{.momentum = 0.9});
  }
  struct Product {
    const char* label;
    std::int64_t m, k, n;
  };
  for (const Product p : {Product{"128x784x128", 128, 784, 128},
                          {"128x128x10", 128, 128, 10},
                          {"512x384x1536", 512, 384, 1536},
                          {"1024x1024x1024", 1024, 1024, 1024}}) {
    row(std::string("linear/") + p.label, "matmul", {Tensor({p.m, p.n})},
        {Tensor({p.m, p.k}), Tensor({p.k, p.n}, Dtype::kFloat32, true), Tensor({p.n}).expand({p.m, p.n})},
        MatmulAttributes{});
    row(std::string("matmul_tn/") + p.label, "matmul", {Tensor({p.m, p.n})},
        {Tensor({p.m, p.k}, Dtype::kFloat32, true), Tensor({p.k, p.n}), Tensor()});
  }
  row("bmm/48x128x64x128", "matmul", {Tensor({48, 128, 128})},
      {Tensor({48, 128, 64}), Tensor({48, 64, 128}, Dtype::kFloat32, true), Tensor()});
  conv_rows("lenet1", {128, 1, 28, 28}, {6, 1, 5, 5}, 1, 2);
  conv_rows("lenet2", {128, 6, 14, 14}, {16, 6, 5, 5}, 1, 0);
  conv_rows("resnet_stem", {16, 3, 64, 64}, {64, 3, 7, 7}, 2, 3);
  conv_rows("resnet_64", {16, 64, 16, 16}, {64, 64, 3, 3}, 1, 1);
  conv_rows("resnet_down", {16, 64, 16, 16}, {128, 64, 3, 3}, 2, 1);
  conv_rows("resnet_512", {16, 512, 2, 2}, {512, 512, 3, 3}, 1, 1);
  const Sizes picture{16, 64, 32, 32}, pooled{16, 64, 16, 16};
  PoolAttributes two;
  for (int d = 0; d < 2; ++d) two.kernel[d] = two.stride[d] = 2;
  row("max_pool", "max_pool", {Tensor(pooled), Tensor(pooled, Dtype::kInt64)}, {Tensor(picture)}, two);
  row("batch_norm", "batch_norm", {Tensor(picture), Tensor({64}), Tensor({64}), Tensor({64}), Tensor({64})},
      {Tensor(picture), Tensor({64}), Tensor({64}), Tensor({64}), Tensor({64})}, BatchNormAttributes{});
  row("batch_norm_backward", "batch_norm_backward", {Tensor(picture), Tensor({64}), Tensor({64})},
      {Tensor(picture), Tensor(picture), Tensor({64}), Tensor({64}), Tensor({64})}, BatchNormAttributes{});
}

}  // namespace

int main(int argc, char** argv) {
  const char* threads = std::getenv("TENON_BENCH_THREADS");
  cpu::set_thread_count(threads ? std::atoi(threads) : 1);
  register_rows();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
