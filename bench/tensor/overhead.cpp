// What an operator costs beside its arithmetic: tiny tensors, one thread. The same source compiles against Tenon and,
// with TENON_BENCH_LIBTORCH, against libtorch (the baseline).
#if defined(TENON_BENCH_LIBTORCH)
#include <torch/torch.h>
namespace lib = torch;
#else
#include <tenon/tenon.h>
namespace lib = tenon;
#endif

#include <benchmark/benchmark.h>

namespace {

void add_without_grad(benchmark::State& state) {
  lib::NoGradGuard no_grad;
  const lib::Tensor a = lib::ones({1});
  const lib::Tensor b = lib::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(a.add(b));
}
BENCHMARK(add_without_grad);

void add_recorded(benchmark::State& state) {
  const lib::Tensor a = lib::ones({1}, lib::TensorOptions().requires_grad(true));
  const lib::Tensor b = lib::ones({1}, lib::TensorOptions().requires_grad(true));
  for (auto _ : state) benchmark::DoNotOptimize(a.add(b));
}
BENCHMARK(add_recorded);

/// Length of the chain: state.range(0) operations, alternately a product and a sum, then backward.
void chain_forward_backward(benchmark::State& state) {
  const lib::Tensor x = lib::ones({1}, lib::TensorOptions().requires_grad(true));
  const lib::Tensor c = lib::full({1}, 0.999);
  for (auto _ : state) {
    lib::Tensor y = x;
    for (std::int64_t i = 0; i < state.range(0) / 2; ++i) y = (y * c) + c;
    y.backward();
    x.mutable_grad().reset();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(chain_forward_backward)->Arg(1000)->Unit(benchmark::kMicrosecond);

void select_view(benchmark::State& state) {
  const lib::Tensor a = lib::ones({4, 4});
  for (auto _ : state) benchmark::DoNotOptimize(a.select(0, 1));
}
BENCHMARK(select_view);

void allocate_empty(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(lib::empty({1}));
}
BENCHMARK(allocate_empty);

/// One picture through a perceptron of two hidden layers, without a gradient.
void mlp_inference(benchmark::State& state) {
  lib::NoGradGuard no_grad;
  lib::nn::Sequential model(lib::nn::Linear(784, 256), lib::nn::ReLU(), lib::nn::Linear(256, 256), lib::nn::ReLU(),
                            lib::nn::Linear(256, 10));
  model->eval();
  const lib::Tensor x = lib::rand({1, 784});
  for (auto _ : state) benchmark::DoNotOptimize(model->forward(x));
}
BENCHMARK(mlp_inference);

}  // namespace

int main(int argc, char** argv) {
  lib::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
