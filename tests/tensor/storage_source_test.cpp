// Storages whose memory a source brings when it is asked for.
#include "support/expect_error.h"

#include <tenon/dispatch/after_kernel.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/storage.h>
#include <tenon/tensor/tensor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

/// Brings ones.
class Ones final : public StorageSource {
 public:
  void bring(StorageImpl& storage) override {
    ++brought;
    const Tensor values = tenon::ones({static_cast<std::int64_t>(storage.nbytes() / 4)});
    storage.take_memory_of(values.impl().storage());
  }
  int brought = 0;
};

TEST(StorageSource, BringsTheMemoryWhenAnOperatorReadsAView) {
  Ones source;
  const Tensor whole = tenon::zeros({6});
  const Tensor view = whole.narrow(0, 2, 3);
  StorageImpl& storage = whole.impl().storage();
  storage.leave_to(&source);
  EXPECT_EQ(view.sum().item<float>(), 0);
  storage.give_back();
  EXPECT_FALSE(storage.is_there());
  EXPECT_EQ(storage.nbytes(), 24U);
  EXPECT_EQ(view.sum().item<float>(), 3);
  EXPECT_EQ(view.sum().item<float>(), 3);
  EXPECT_EQ(source.brought, 1);
  storage.leave_to(nullptr);
}

TEST(StorageSource, WhatIsSavedForBackwardReadsWhatWasBrought) {
  Ones source;
  const Tensor weight = tenon::full({3}, 2.0), x = tenon::full({3}, 5.0).requires_grad_();
  const Tensor y = (x * weight).sum();
  weight.impl().storage().leave_to(&source);
  weight.impl().storage().give_back();
  y.backward();
  EXPECT_EQ(x.grad()[0].item<float>(), 1);
  weight.impl().storage().leave_to(nullptr);
}

TEST(StorageSource, MemoryOfAnotherSizeOrBesideItsOwnIsRefused) {
  const Tensor four = tenon::zeros({4}), five = tenon::zeros({5});
  expect_error([&] { four.impl().storage().take_memory_of(five.impl().storage()); },
               "a storage of 16 B on cpu:0 cannot take the memory of one of 20 B");
  const Tensor other = tenon::zeros({4});
  expect_error([&] { four.impl().storage().take_memory_of(other.impl().storage()); }, "it has its own");
}

TEST(StorageSource, ForeignMemoryIsNotGivenBack) {
  float values[2] = {1, 2};
  const Tensor foreign = tenon::from_blob(values, {2});
  expect_error([&] { foreign.impl().storage().give_back(); }, "memory that no allocator here gave");
}

TEST(AfterKernel, RunsOnceWhenTheNextKernelHasBeenCalled) {
  const Tensor x = tenon::ones({2});
  int runs = 0;
  after_kernel([&] { ++runs; });
  EXPECT_EQ(runs, 0);
  x.add(x);
  EXPECT_EQ(runs, 1);
  x.add(x);
  EXPECT_EQ(runs, 1);
}

TEST(AfterKernel, MayWaitForAnotherKernel) {
  const Tensor x = tenon::ones({2});
  int runs = 0;
  after_kernel([&] { after_kernel([&] { ++runs; }); });
  x.neg();
  EXPECT_EQ(runs, 0);
  x.neg();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace tenon::test
