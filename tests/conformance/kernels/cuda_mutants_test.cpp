// Faults put into the shipped CUDA kernels, one each: the check that is meant for it finds it.
#include "harness.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/paged_attention.h>
#include <tenon/kernel/attributes/quantization.h>
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
  int capability = 75;  // of the device whose code has the fault
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
Tensor numbers_of_16_bits(Sizes sizes) {
  Random random(5);
  return random_tensor(Dtype::kBFloat16, sizes, Layout::kContiguous, random);
}
void softmax_in_16_bits(Bench& bench) {
  const DimAttributes along{.dim = 1};
  bench.run("softmax", {Tensor(Dtype::kBFloat16, {2, 1100})}, {numbers_of_16_bits({2, 1100})}, &along);
}
void sum_columns_in_16_bits(Bench& bench) {
  bench.run("sum", {Tensor(Dtype::kBFloat16, {1, 72})}, {numbers_of_16_bits({64, 72})});
}
void sum_columns(Bench& bench) { bench.run("sum", {Tensor(Dtype::kFloat32, {1, 40})}, {numbers({64, 40})}); }

void attend(Bench& bench) {
  const AttentionAttributes plain;
  const Tensor q = numbers({1, 1, 70, 8});
  bench.run("attention", {Tensor(Dtype::kFloat32, q.sizes()), Tensor(Dtype::kFloat32, {1, 1, 70})}, {q, q, q, Tensor()},
            &plain);
}
void attend_in_16_bits(Bench& bench) {
  const AttentionAttributes plain;
  const Sizes sizes{1, 1, 130, 64};
  const Tensor q = numbers_of_16_bits(sizes);
  bench.run("attention", {Tensor(Dtype::kBFloat16, sizes), Tensor(Dtype::kFloat32, {1, 1, 130})}, {q, q, q, Tensor()},
            &plain);
}
void attend_to_pages(Bench& bench) {
  const PagedAttentionAttributes plain{.length = 300};
  bench.run("paged_attention", {Tensor(Dtype::kFloat32, {1, 2, 8})},
            {numbers({1, 2, 8}), numbers({2, 160, 2, 8}), numbers({2, 160, 2, 8})}, &plain);
}
void convolve_bytes(Bench& bench) {
  const auto bytes = [](Dtype dtype, Sizes sizes, Layout layout) {
    return Tensor(dtype, std::move(sizes), layout).fill([](i64 i) { return static_cast<double>(i % 90); });
  };
  QuantizedConvAttributes plain;
  bench.run("quantized_conv", {Tensor(Dtype::kFloat32, {1, 9, 10, 10}, Layout::kChannelsLast)},
            {bytes(Dtype::kUInt8, {1, 20, 12, 12}, Layout::kChannelsLast),
             bytes(Dtype::kInt8, {9, 20, 3, 3}, Layout::kContiguous), numbers({9}), Tensor()},
            &plain);
}
void unpool(Bench& bench) {
  Tensor index(Dtype::kInt64, {1, 1, 100});
  for (i64 i = 0; i < index.count(); ++i) index.set_integer(i, i / 3);
  bench.run("max_pool_backward", {Tensor(Dtype::kFloat32, {1, 1, 40})}, {numbers({1, 1, 100}), index});
}
void running_sum(Bench& bench) {
  const DimAttributes along{.dim = 1};
  bench.run("cumsum", {Tensor(Dtype::kFloat32, {2, 1100})}, {numbers({2, 1100})}, &along);
}
void product(Bench& bench) {
  Random random(5);
  const Tensor a = random_tensor(Dtype::kInt32, {40, 50}, Layout::kContiguous, random, -9, 9);
  const Tensor b = random_tensor(Dtype::kInt32, {50, 70}, Layout::kContiguous, random, -9, 9);
  const MatmulAttributes plain;
  bench.run("matmul", {Tensor(Dtype::kInt32, {40, 70})}, {a, b, Tensor()}, &plain);
}

void sort(Bench& bench) {
  const SortAttributes along{.dim = 1};
  bench.run("sort", {Tensor(Dtype::kFloat32, {1, 200}), Tensor(Dtype::kInt64, {1, 200})}, {numbers({1, 200})}, &along);
}
void best_five(Bench& bench) {
  const TopkAttributes five{.k = 5, .dim = 1};
  bench.run("topk", {Tensor(Dtype::kFloat32, {1, 5}), Tensor(Dtype::kInt64, {1, 5})}, {numbers({1, 1500})}, &five);
}
void layer_norm(Bench& bench) {
  const LayerNormAttributes rows{.normalized = 1100};
  bench.run("layer_norm",
            {Tensor(Dtype::kFloat32, {2, 1100}), Tensor(Dtype::kFloat32, {2}), Tensor(Dtype::kFloat32, {2})},
            {numbers({2, 1100}), Tensor(), Tensor()}, &rows);
}
Tensor two_places() {
  return Tensor(Dtype::kInt64, {600}).fill([](i64 i) { return static_cast<double>(i % 2); });
}
void put(Bench& bench) {
  const IndexAttributes assign;
  bench.run("index_put", {numbers({2})}, {numbers({600}), two_places()}, &assign);
}
void add(Bench& bench) {
  const IndexAddAttributes rows;
  bench.run("index_add", {numbers({2})}, {two_places(), numbers({600})}, &rows);
}
void nonzero(Bench& bench) { bench.run("nonzero", {Tensor(Dtype::kInt64, {600, 1})}, {numbers({600})}); }

class CudaMutants : public testing::TestWithParam<Mutant> {};

TEST_P(CudaMutants, IsFound) {
  Bench& bench = *benches().front();
  bench.enter();
  GetParam().run(bench);  // right as it is shipped
  EXPECT_DEATH(
      {
        bench.enter();
        emulated_cuda::start({.devices = 1, .compute_capability = GetParam().capability, .faults = {GetParam().fault}});
        GetParam().run(bench);
      },
      GetParam().sentence);
}

constexpr const char* kSharedRace = "that was never written|races in shared memory";

INSTANTIATE_TEST_SUITE_P(
    All, CudaMutants,
    testing::Values(
        Mutant{"TileWithoutABarrier", {"transpose_kernelIj", "bar.sync", ""}, copy_transposed, kSharedRace},
        Mutant{"PacketsThatOverlap", {"3NegEf", "mul.lo.s32", "add.s32", 4}, negate, "uses 16 bytes at .* not aligned"},
        Mutant{"BlocksThatDoTheSame", {"3NegEf", "%ctaid.x", "0"}, negate, "races in global memory .* with block 0"},
        Mutant{"AnElementTooMany", {"3NegEf", ", -1;", ", 0;"}, negate, "uses 4 bytes at .*, where nothing is"},
        Mutant{"LineWithoutABarrier", {"softmax_kernelIfLb0", "bar.sync", "", 2}, softmax, kSharedRace},
        Mutant{"HalfAWarpsMask",
               {"softmax_kernelIfLb0", ", -1;", ", 65535;", 7},
               softmax,
               "from lane 16, which its mask does not name"},
        Mutant{"SumWithoutABarrier", {"3SumIfEEEEvT_T0_", "bar.sync", ""}, sum_columns, kSharedRace},
        Mutant{"PacketsOfALineFromSharedMemory",
               {"14softmax_kernelINS0_4BF16ELb0", "ld.v4.u32", "ld.shared.v4.u32"},
               softmax_in_16_bits,
               "ld.shared.v4.u32 uses 16 bytes at .* of shared memory"},
        Mutant{"ColumnsWithoutABarrier",
               {"packed_columns_kernelINS0_4BF16", "bar.sync", ""},
               sum_columns_in_16_bits,
               kSharedRace},
        Mutant{"ScanWithoutABarrier", {"scan_kernelIf", "bar.sync", "", 2}, running_sum, kSharedRace},
        Mutant{"SortWithoutABarrier", {"block_sort_kernel", "bar.sync", ""}, sort, kSharedRace},
        Mutant{"SelectionWithoutABarrier", {"select_kernel", "bar.sync", "", 2}, best_five, kSharedRace},
        Mutant{"NormWithoutABarrier", {"11norm_kernelIf", "bar.sync", "", 2}, layer_norm, kSharedRace},
        Mutant{"RanksWithoutABarrier", {"write_kernelIj", "bar.sync", "", 2}, nonzero, kSharedRace},
        Mutant{"AllEqualIndicesWrite", {"assign_kernelIj", "@%p5 bra", ""}, put, "races in global memory"},
        Mutant{"EachOfARunAddsItUp", {"accumulate_kernelIf", "@%p5 bra", ""}, add, "races in global memory"},
        Mutant{"ProductWithoutItsFirstBarrier", {"product_kernelIi", "bar.sync", ""}, product, kSharedRace},
        Mutant{"ProductWithoutItsSecondBarrier", {"product_kernelIi", "bar.sync", "", 2}, product, kSharedRace},
        Mutant{"AttentionWithoutABarrier", {"7forwardIfEEv", "bar.sync", "", 3}, attend, kSharedRace},
        Mutant{"PagesWithoutABarrier", {"few_queries_kernelIf", "bar.sync", "", 2}, attend_to_pages, kSharedRace},
        Mutant{"BytesWithoutABarrier", {"tiled_kernelIhf", "bar.sync", ""}, convolve_bytes, kSharedRace},
        Mutant{"TensorCoresWithoutABarrier",
               {"forward_on_tensor_coresINS0_4BF16ELi64E", "bar.sync", ""},
               attend_in_16_bits,
               "is on its way|that was never written|races in shared memory",
               90},
        Mutant{"TensorCoresThatDoNotWaitForCopies",
               {"forward_on_tensor_coresINS0_4BF16ELi64E", "cp.async.wait_group 0", "cp.async.wait_group 1"},
               attend_in_16_bits,
               "ldmatrix.* to which an asynchronous copy is on its way",
               90},
        Mutant{"WarpThatDoesNotWait",
               {"max_backward_kernelIff", "bar.warp.sync", ""},
               unpool,
               "races in global memory .* of its block"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tenon::conformance
