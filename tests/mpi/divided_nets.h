// What tests of divided parameters share: small nets, batches that all ranks know, and what the allocator counts.
#pragma once

#include "comm/ranks.h"

#include <tenon/device/device_state.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/distributed/fully_sharded_data_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace tenon::test {

using nn::parallel::DistributedDataParallel;
using nn::parallel::FullyShardedDataParallel;
using nn::parallel::FullyShardedDataParallelOptions;
using nn::parallel::ShardingStrategy;

inline constexpr const char* kOrdered = "mpi:timeout=60,order=rank";

inline nn::Sequential net_of_seed(std::uint64_t seed, std::int64_t width = 16) {
  tenon::manual_seed(seed);
  return nn::Sequential(nn::Linear(12, width), nn::Tanh(), nn::Linear(width, width), nn::Tanh(), nn::Linear(width, 13));
}

/// This rank's part of a batch that all know.
inline Tensor batch_of(int step) {
  tenon::manual_seed(static_cast<std::uint64_t>(500 + step));
  return tenon::randn({16, 12}).narrow(0, 4 * ranks()->rank(), 4);
}

template <class Model>
double backward(Model& model, int step) {
  const Tensor loss = model.forward(batch_of(step)).pow(2).mean();
  loss.backward();
  return loss.template item<double>();
}

/// What the whole parameters are, on every rank.
inline std::vector<Tensor> values_of(const nn::Module& module) {
  std::vector<Tensor> values;
  for (const Tensor& parameter : module.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<std::size_t>(a.numel()) * size_of(a.scalar_type())) == 0;
}

inline std::int64_t bytes_for(Purpose purpose, bool peak) {
  const auto stat =
      device_state(Device(kCPU)).allocator().stats().requested_by_purpose[static_cast<std::size_t>(purpose)];
  return peak ? stat.peak : stat.current;
}

inline void expect_same_gradients(const nn::Module& a, const nn::Module& b) {
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    const Tensor one = a.parameters()[i].grad(), other = b.parameters()[i].grad();
    ASSERT_EQ(one.defined(), other.defined()) << i;
    EXPECT_TRUE(!one.defined() || one.allclose(other)) << i;
  }
}

/// Layers of one size, so that closed forms are exact.
inline nn::Sequential wide_net() {
  tenon::manual_seed(9);
  nn::Sequential net;
  for (int i = 0; i < 8; ++i) net->push_back(nn::Linear(256, 256));
  return net;
}

}  // namespace tenon::test
