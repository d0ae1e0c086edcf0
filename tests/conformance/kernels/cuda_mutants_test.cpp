// Faults put into the shipped CUDA kernels, one each: the check that is meant for it finds it.
#include "harness.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <ostream>

namespace tenon::conformance {

using emulated_cuda::Fault;

struct Mutant {
  const char* name;
  Fault fault;
  void (*run)(Bench& bench);
  const char* sentence;
};
void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

namespace {

Tensor numbers(Sizes sizes, Layout layout = Layout::kContiguous) {
  Random random(5);
  return random_tensor(Dtype::kFloat32, sizes, layout, random);
}

void copy_transposed(Bench& bench) {
  bench.run("copy", {Tensor(Dtype::kFloat32, {70, 40})}, {numbers({70, 40}, Layout::kTransposed)});
}
void negate(Bench& bench) { bench.run("neg", {Tensor(Dtype::kFloat32, {4099})}, {numbers({4099})}); }
void softmax(Bench& bench) {
  const DimAttributes along{.dim = 1};
  bench.run("softmax", {Tensor(Dtype::kFloat32, {2, 1100})}, {numbers({2, 1100})}, &along);
}
void sum_columns(Bench& bench) { bench.run("sum", {Tensor(Dtype::kFloat32, {1, 40})}, {numbers({64, 40})}); }

void multiply_integers(Bench& bench) {
  const Tensor a(Dtype::kInt64, {40, 40}), b(Dtype::kInt64, {40, 40});
  bench.run("matmul", {Tensor(Dtype::kInt64, {40, 40})}, {a, b, Tensor()});
}
void attend(Bench& bench) {
  const AttentionAttributes plain;
  const Tensor q = numbers({1, 1, 70, 8});
  bench.run("attention", {Tensor(Dtype::kFloat32, q.sizes()), Tensor(Dtype::kFloat32, {1, 1, 70})}, {q, q, q, Tensor()},
            &plain);
}
void unpool(Bench& bench) {
  Tensor index(Dtype::kInt64, {1, 1, 100});
  for (i64 i = 0; i < index.count(); ++i) index.set_integer(i, i / 3);
  bench.run("max_pool_backward", {Tensor(Dtype::kFloat32, {1, 1, 40})}, {numbers({1, 1, 100}), index});
}

class CudaMutants : public testing::TestWithParam<Mutant> {};

TEST_P(CudaMutants, IsFound) {
  Bench& bench = *benches().front();
  bench.enter();
  GetParam().run(bench);  // right as it is shipped
  EXPECT_DEATH(
      {
        bench.enter();
        emulated_cuda::start({.devices = 1, .compute_capability = 75, .faults = {GetParam().fault}});
        GetParam().run(bench);
      },
      GetParam().sentence);
}

constexpr const char* kSharedRace = "that was never written|races in shared memory";

INSTANTIATE_TEST_SUITE_P(
    All, CudaMutants,
    testing::Values(
        Mutant{"TileWithoutABarrier", {"transpose_kernelIj", "bar.sync", ""}, copy_transposed, kSharedRace},
        Mutant{"PacketsThatOverlap", {"3NegEf", "mul.lo.s32", "add.s32"}, negate, "uses 16 bytes at .* not aligned"},
        Mutant{"BlocksThatDoTheSame", {"3NegEf", "%ctaid.x", "0"}, negate, "races in global memory .* with block 0"},
        Mutant{"AnElementTooMany", {"3NegEf", "setp.gt.u32", "setp.lt.u32"}, negate, "beyond the end"},
        Mutant{"LineWithoutABarrier", {"softmax_kernelIfLb0", "bar.sync", "", 2}, softmax, kSharedRace},
        Mutant{"HalfAWarpsMask", {"softmax_kernelIfLb0", ", -1;", ", 65535;"}, softmax, "does not name its own thread"},
        Mutant{"SumWithoutABarrier", {"reduce_kernel", "bar.sync", ""}, sum_columns, kSharedRace},
        Mutant{"ProductWithoutABarrier", {"product_kernelIl", "bar.sync", "", 2}, multiply_integers, kSharedRace},
        Mutant{"SliceOverwrittenEarly", {"product_kernelIl", "bar.sync", ""}, multiply_integers, kSharedRace},
        Mutant{"AttentionWithoutABarrier", {"orwardIfEEvNS1_7Problem", "bar.sync", "", 3}, attend, kSharedRace},
        Mutant{"WarpThatDoesNotWait",
               {"max_backward_kernelIff", "bar.warp.sync", ""},
               unpool,
               "races in global memory .* of its block"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tenon::conformance
