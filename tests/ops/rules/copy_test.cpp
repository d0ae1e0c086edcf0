// Copies: what they move between devices, dtypes and layouts, what they leave where it is, and what they refuse.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Shape = std::vector<std::int64_t>;

const Device kHere("cpu"), kThere("simulated:0"), kElsewhere("simulated:1");

class CopyRules : public testing::Test {
 protected:
  void SetUp() override {
    shutdown();
    set_backend_option("simulated", "count", std::int64_t{2});
  }
  void TearDown() override { shutdown(); }
};

/// The numbers from 1 up in (2, 3), lying in memory in each of the ways of a view.
std::vector<Tensor> layouts(Device device, Dtype dtype) {
  const TensorOptions options = TensorOptions(dtype).device(device);
  const Tensor numbers = arange(1, 7, TensorOptions(dtype)).view({2, 3});
  const Tensor transposed = empty({3, 2}, options).t(), cut = empty({4, 7}, options).slice(0, 1, 3).slice(1, 2, 5),
               stepped = empty({2, 6}, options).slice(1, 1, 6, 2), plain = empty({2, 3}, options);
  for (const Tensor& one : {plain, transposed, cut, stepped}) one.copy_(numbers);
  return {plain, transposed, cut, stepped};
}

TEST_F(CopyRules, EveryLayoutAndDtypeArrivesOnEveryDevice) {
  const Tensor want = arange(1, 7).view({2, 3});
  for (const Device& from : {kHere, kThere, kElsewhere}) {
    for (const Device& to : {kHere, kThere, kElsewhere}) {
      for (const Dtype dtype : {kFloat32, kInt16}) {
        for (const Tensor& source : layouts(from, kFloat32)) {
          const Tensor moved = source.to(to, dtype);
          EXPECT_EQ(moved.device(), to);
          EXPECT_EQ(moved.scalar_type(), dtype);
          EXPECT_TRUE(moved.cpu().to(kInt64).equal(want)) << from.str() << " to " << to.str();
          for (const Tensor& target : layouts(to, dtype)) {
            target.zero_();
            target.copy_(source);
            EXPECT_TRUE(target.cpu().to(kInt64).equal(want)) << from.str() << " into " << to.str();
          }
        }
      }
    }
  }
}

TEST_F(CopyRules, WhatIsCopiedIntoBroadcasts) {
  for (const Device& from : {kHere, kThere}) {
    const Tensor row = tensor({1.f, 2.f, 3.f}).to(TensorOptions(from));
    for (const Device& to : {kHere, kThere}) {
      for (const Tensor& target : layouts(to, kFloat32)) {
        target.copy_(row);
        EXPECT_TRUE(target.cpu().equal(tensor({{1.f, 2.f, 3.f}, {1.f, 2.f, 3.f}})));
        target.copy_(row.narrow(0, 1, 1).view({}));
        EXPECT_TRUE(target.cpu().equal(full({2, 3}, 2.f)));
        target.copy_(row.narrow(0, 0, 2).unsqueeze(1));
        EXPECT_TRUE(target.cpu().equal(tensor({{1.f, 1.f, 1.f}, {2.f, 2.f, 2.f}})));
      }
    }
  }
  const std::string text = message_of([] { zeros({3}).copy_(ones({2, 3})); });
  EXPECT_EQ(text, "output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_THROW(zeros({3}).copy_(ones({2})), Error);
}

TEST_F(CopyRules, NothingIsMovedOfNothing) {
  const Tensor none = empty({0, 3}).to(TensorOptions(kThere));
  EXPECT_EQ(none.device(), kThere);
  EXPECT_EQ(none.cpu().sizes().vec(), (Shape{0, 3}));
  EXPECT_NO_THROW(none.copy_(zeros({1, 3})));
}

TEST_F(CopyRules, ValuesThatAreNotThereAreAskedOfNobody) {
  const TensorOptions meta = TensorOptions(Device("meta"));
  const Tensor sizes_alone = ones({2, 3}).to(meta);
  EXPECT_EQ(sizes_alone.sizes().vec(), (Shape{2, 3}));
  EXPECT_EQ(sizes_alone.to(kFloat64).scalar_type(), kFloat64);
  EXPECT_NO_THROW(sizes_alone.copy_(zeros({2, 3})));
  const std::string text =
      "Cannot copy out of meta tensor; no data! A module gets memory without values by to_empty(device).";
  EXPECT_EQ(message_of<NotImplementedError>([&] { sizes_alone.cpu(); }), text);
  EXPECT_EQ(message_of<NotImplementedError>([&] { zeros({2, 3}).copy_(sizes_alone); }), text);
  EXPECT_EQ(message_of<NotImplementedError>([&] { ones({}).to(meta).item(); }),
            "Tensor.item() cannot be called on meta tensors: they have no data");
}

TEST_F(CopyRules, ToGivesTheTensorItselfWhereNothingChanges) {
  const Tensor x = ones({2, 3, 4, 5}), last = x.contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(x.to(kFloat32).is_same(x));
  EXPECT_TRUE(x.to(kHere, kFloat32).is_same(x));
  EXPECT_TRUE(x.to(TensorOptions()).is_same(x));
  EXPECT_TRUE(x.to(zeros({})).is_same(x));
  EXPECT_TRUE(x.to(kFloat32, false, false, MemoryFormat::Preserve).is_same(x));
  EXPECT_TRUE(x.to(kFloat32, false, false, MemoryFormat::Contiguous).is_same(x));
  EXPECT_TRUE(last.to(TensorOptions().memory_format(MemoryFormat::ChannelsLast)).is_same(last));
  EXPECT_FALSE(x.to(kFloat32, false, /*copy=*/true).is_same(x));
  EXPECT_FALSE(x.to(kFloat64).is_same(x));
  EXPECT_FALSE(x.to(kThere, kFloat32).is_same(x));
  EXPECT_FALSE(last.to(kFloat32, false, false, MemoryFormat::Contiguous).is_same(last));
  EXPECT_EQ(x.to(zeros({}, TensorOptions(kInt32).device(kThere))).device(), kThere);
  EXPECT_EQ(x.to(zeros({}, TensorOptions(kInt32).device(kThere))).scalar_type(), kInt32);
  EXPECT_EQ(message_of([&] { x.to(TensorOptions(kFloat64).requires_grad(true)); }),
            "to(options) expects unset requires_grad flag, but got options.requires_grad set as true");
}

TEST_F(CopyRules, AConversionKeepsTheOrderOfADenseTensorAndOthersBecomeContiguous) {
  const Tensor x = ones({2, 3, 4, 5}), last = x.contiguous(MemoryFormat::ChannelsLast);
  const auto strides = [](const Tensor& t) { return t.strides().vec(); };
  for (const Device& to : {kHere, kThere}) {
    EXPECT_EQ(strides(x.permute({3, 0, 2, 1}).to(to, kFloat64)), strides(x.permute({3, 0, 2, 1})));
    EXPECT_EQ(strides(last.to(to, kFloat64)), strides(last));
    EXPECT_EQ(strides(x.slice(3, 0, 5, 2).to(to, kFloat64)), (Shape{36, 12, 3, 1}));
    EXPECT_EQ(strides(ones({1, 3}).expand({2, 3}).to(to, kFloat64)), (Shape{3, 1}));
    EXPECT_EQ(strides(last.to(to, kFloat64, false, false, MemoryFormat::Contiguous)), strides(x));
    EXPECT_EQ(strides(x.to(to, kFloat64, false, false, MemoryFormat::ChannelsLast)), strides(last));
  }
  const Tensor volume = ones({2, 3, 4, 5, 6});
  EXPECT_TRUE(
      volume.to(kFloat64, false, false, MemoryFormat::ChannelsLast3d).is_contiguous(MemoryFormat::ChannelsLast3d));
  EXPECT_THROW(x.to(kFloat64, false, false, MemoryFormat::ChannelsLast3d), Error) << "of five dimensions only";
  EXPECT_THROW(volume.to(kFloat64, false, false, MemoryFormat::ChannelsLast), Error) << "of four only";
}

TEST_F(CopyRules, ACloneLiesAsItsFormatSays) {
  const Tensor x = arange(120.).view({2, 3, 4, 5}), turned = x.permute({0, 2, 3, 1});
  EXPECT_EQ(turned.clone().strides().vec(), turned.strides().vec());
  EXPECT_TRUE(turned.clone(MemoryFormat::Contiguous).is_contiguous());
  EXPECT_TRUE(x.clone(MemoryFormat::ChannelsLast).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(x.view({2, 3, 4, 5, 1}).clone(MemoryFormat::ChannelsLast3d).is_contiguous(MemoryFormat::ChannelsLast3d));
  EXPECT_THROW(x.clone(MemoryFormat::ChannelsLast3d), Error);
  for (const auto format : {MemoryFormat::Preserve, MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
    EXPECT_TRUE(turned.clone(format).equal(turned));
    EXPECT_FALSE(turned.clone(format).is_alias_of(turned));
  }
  EXPECT_EQ(x.slice(3, 1, 5, 2).clone().strides().vec(), (Shape{24, 8, 2, 1}));
  EXPECT_EQ(empty({0, 3, 2}).transpose(1, 2).clone().strides().vec(), empty({0, 3, 2}).transpose(1, 2).strides().vec());
  EXPECT_EQ(message_of([&] { x.contiguous(MemoryFormat::Preserve); }),
            "preserve memory format is unsupported by the contiguous operator");
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_FALSE(x.contiguous(MemoryFormat::ChannelsLast).is_same(x));
}

TEST_F(CopyRules, WhatOverlapsIsReadBeforeItIsWritten) {
  const auto numbers = [] { return arange(6).clone(); };
  Tensor x = numbers();
  x.slice(0, 1, 6).copy_(x.slice(0, 0, 5));
  EXPECT_TRUE(x.equal(tensor({0, 0, 1, 2, 3, 4})));
  x = numbers();
  x.slice(0, 0, 5).copy_(x.slice(0, 1, 6));
  EXPECT_TRUE(x.equal(tensor({1, 2, 3, 4, 5, 5})));
  x = numbers();
  x.copy_(x.flip(0));
  x.view({2, 3}).copy_(x.view({2, 3}).select(0, 1));
  EXPECT_TRUE(x.equal(tensor({2, 1, 0, 2, 1, 0})));
  x = numbers();
  x.slice(0, 5, 6).expand({3}).sum();
  x.slice(0, 0, 3).copy_(x.slice(0, 2, 5));
  EXPECT_TRUE(x.equal(tensor({2, 3, 4, 3, 4, 5})));
  x = arange(9).view({3, 3}).clone();
  x.copy_(x.t());
  EXPECT_TRUE(x.equal(tensor({{0, 3, 6}, {1, 4, 7}, {2, 5, 8}})));
  x = arange(1000).clone();
  x.slice(0, 1, 1000).copy_(x.slice(0, 0, 999));
  EXPECT_TRUE(x.slice(0, 1, 1000).equal(arange(999)));
  x = arange(1000).clone();
  x.slice(0, 0, 999).copy_(x.slice(0, 1, 1000));
  EXPECT_TRUE(x.slice(0, 0, 999).equal(arange(1, 1000)));
  x = arange(4).clone();
  x.slice(0, 2, 4).copy_(x.slice(0, 0, 2));
  EXPECT_TRUE(x.equal(tensor({0, 1, 0, 1}))) << "side by side";
}

TEST_F(CopyRules, WhatDoesNotOverlapIsCopiedWithoutMemoryBesideIt) {
  const AllocatorStack& stack = device_state(kHere).allocator();
  const auto taken = [&stack](const Tensor& to, const Tensor& from) {
    const std::int64_t before = stack.stats().requested_bytes.allocated;
    to.copy_(from);
    return stack.stats().requested_bytes.allocated - before;
  };
  const Tensor x = arange(12), y = zeros({12}, kInt64);
  EXPECT_EQ(taken(y, x), 0);
  EXPECT_EQ(taken(x.slice(0, 0, 6), x.slice(0, 6, 12)), 0) << "of one storage";
  EXPECT_GT(taken(x.slice(0, 0, 7), x.slice(0, 5, 12)), 0);
}

TEST_F(CopyRules, ACopyIsAWriteEvenOfItselfAndItsGradientIsTheSources) {
  Tensor x = ones({2});
  const std::int64_t before = x._version();
  x.copy_(x);
  EXPECT_EQ(x._version(), before + 1);
  const Tensor source = tensor({1., 2.}, TensorOptions(kFloat64)).requires_grad_();
  const Tensor old = ones({3, 2}).requires_grad_();
  Tensor target = old.mul(2);
  target.copy_(source);
  EXPECT_TRUE(target.requires_grad());
  target.mul(tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}})).sum().backward();
  EXPECT_EQ(source.grad().scalar_type(), kFloat64);
  EXPECT_TRUE(source.grad().equal(tensor({9., 12.}, TensorOptions(kFloat64))));
  EXPECT_TRUE(old.grad().equal(zeros({3, 2})));
  Tensor whole = zeros({2}, kInt64);
  whole.copy_(source);
  EXPECT_FALSE(whole.requires_grad()) << "integers have no gradient";
  const Tensor leaf = ones({2}).requires_grad_();
  EXPECT_THROW(leaf.copy_(ones({2})), Error);
  EXPECT_THROW(ones({1}).expand({2}).copy_(ones({2})), Error) << "one element, written twice";
}

TEST_F(CopyRules, AGradientReturnsToTheDeviceAndDtypeThatItsTensorHas) {
  const Tensor x = tensor({1.f, 2.f}).requires_grad_();
  x.to(kThere, kFloat64).mul(3).to(kHere, kFloat64).sum().backward();
  EXPECT_EQ(x.grad().device(), kHere);
  EXPECT_EQ(x.grad().scalar_type(), kFloat32);
  EXPECT_TRUE(x.grad().equal(tensor({3.f, 3.f})));
  const Tensor away = zeros({2}, TensorOptions(kFloat64).device(kThere)), y = tensor({1.f, 2.f}).requires_grad_();
  away.copy_(y);
  away.mul(2).sum().backward();
  EXPECT_EQ(y.grad().device(), kHere);
  EXPECT_TRUE(y.grad().equal(tensor({2.f, 2.f})));
}

TEST_F(CopyRules, AFillByATensorTakesOneWithoutDimensions) {
  Tensor x = zeros({2, 2});
  EXPECT_TRUE(x.fill_(tensor(3.f)).equal(full({2, 2}, 3.f)));
  EXPECT_EQ(message_of([&] { x.fill_(tensor({3.f})); }),
            "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.");
  const Tensor value = tensor(5.f).requires_grad_(), old = ones({2, 2}).requires_grad_();
  Tensor filled = old.mul(1);
  filled.fill_(value);
  filled.sum().backward();
  EXPECT_EQ(value.grad().item<float>(), 4);
  EXPECT_TRUE(old.grad().equal(zeros({2, 2})));
  for (const bool by_number : {true, false}) {
    const Tensor leaf = ones({2}).requires_grad_();
    Tensor written = leaf.mul(2);
    by_number ? written.fill_(7) : written.zero_();
    EXPECT_TRUE(written.equal(full({2}, by_number ? 7.f : 0.f)));
    EXPECT_EQ(written._version(), 1);
    written.sum().backward();
    EXPECT_TRUE(leaf.grad().equal(zeros({2})));
    EXPECT_THROW(leaf.fill_(1), Error);
    EXPECT_THROW(leaf.zero_(), Error);
  }
}

TEST_F(CopyRules, ResizingKeepsWhatFitsAndTakesMemoryForMore) {
  Tensor x = arange(6);
  EXPECT_TRUE(x.resize_({2, 2}).equal(tensor({{0, 1}, {2, 3}})));
  EXPECT_TRUE(x.resize_({6}).equal(arange(6))) << "the memory is still there";
  x.resize_({3, 4});
  EXPECT_TRUE(x.view({-1}).slice(0, 0, 6).equal(arange(6)));
  EXPECT_GE(x.storage().nbytes(), 12 * sizeof(std::int64_t));
  EXPECT_EQ(x.strides().vec(), (Shape{4, 1}));
  Tensor part = arange(6).slice(0, 2, 4);
  EXPECT_TRUE(part.resize_({4}).equal(tensor({2, 3, 4, 5}))) << "from where it begins";
  EXPECT_EQ(message_of([] { ones({2}).requires_grad_().resize_({3}); }), "cannot resize variables that require grad");
  EXPECT_THROW(x.resize_({-1, 2}), Error);
  EXPECT_THROW(x.resize_({std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
}

TEST_F(CopyRules, SetMakesATensorAnotherView) {
  Tensor x = zeros({2});
  const Tensor source = arange(6).view({2, 3}).t();
  const std::int64_t before = x._version();
  x.set_(source);
  EXPECT_TRUE(x.is_alias_of(source));
  EXPECT_TRUE(x.equal(source));
  EXPECT_EQ(x.strides().vec(), source.strides().vec());
  EXPECT_EQ(x.scalar_type(), kInt64);
  EXPECT_EQ(x._version(), before + 1);
  EXPECT_TRUE(zeros({1}, kInt64).set_(arange(6).slice(0, 4)).equal(tensor({4, 5})));
  EXPECT_THROW(ones({2}).requires_grad_().set_(ones({2})), Error);
}

TEST_F(CopyRules, TheNumberOfATensorOfOneElementIsThatOfItsDtype) {
  for (const Dtype dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for (const Device& device : {kHere, kThere}) {
      const Tensor x = tensor({7, 1, 7}).to(device, dtype).narrow(0, 1, 1);
      EXPECT_EQ(x.item().toDouble(), 1) << toString(dtype);
      EXPECT_EQ(x.item().isFloatingPoint(), is_floating_point(dtype));
      EXPECT_EQ(x.item().isBoolean(), dtype == kBool);
      EXPECT_TRUE(x.is_nonzero());
      EXPECT_FALSE(x.logical_not().is_nonzero());
    }
  }
  EXPECT_EQ(tensor(std::int64_t{1} << 60).item<std::int64_t>(), std::int64_t{1} << 60);
  EXPECT_EQ(message_of([] { ones({2}).item(); }), "a Tensor with 2 elements cannot be converted to Scalar");
  EXPECT_EQ(message_of([] { ones({0}).item(); }), "a Tensor with 0 elements cannot be converted to Scalar");
  EXPECT_EQ(message_of([] { ones({0}).is_nonzero(); }), "Boolean value of Tensor with no values is ambiguous");
  EXPECT_EQ(message_of([] { ones({2}).is_nonzero(); }),
            "Boolean value of Tensor with more than one value is ambiguous");
}

TEST_F(CopyRules, AssigningToAnIndexedTensorWritesIntoIt) {
  Tensor x = zeros({2, 2});
  const Tensor row = tensor({1.f, 2.f});
  x[0] = row;
  x[1] = row.mul(2);
  EXPECT_TRUE(x.equal(tensor({{1.f, 2.f}, {2.f, 4.f}})));
  x[1] = Scalar(7);
  EXPECT_TRUE(x.equal(tensor({{1.f, 2.f}, {7.f, 7.f}})));
}

TEST_F(CopyRules, PinnedMemoryBelongsToADevice) {
  const Tensor x = arange(6.).view({2, 3}).t(), pinned = x.pin_memory(kThere);
  EXPECT_TRUE(pinned.equal(x));
  EXPECT_EQ(pinned.strides().vec(), x.strides().vec()) << "dense: as it lies";
  EXPECT_TRUE(pinned.pin_memory(kThere).is_same(pinned));
  EXPECT_FALSE(x.is_pinned());
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_TRUE(pinned.is_pinned(kThere));
  EXPECT_TRUE(pinned.is_pinned(Device("simulated")));
  EXPECT_FALSE(pinned.is_pinned(kElsewhere));
  EXPECT_FALSE(pinned.is_pinned(kHere));
  EXPECT_FALSE(x.is_pinned(kThere));
  EXPECT_EQ(arange(12.).slice(0, 0, 12, 3).pin_memory(kThere).strides().vec(), (Shape{1}));
  EXPECT_EQ(message_of([] { zeros({1}, TensorOptions(kThere)).pin_memory(kThere); }),
            "cannot pin a tensor on simulated:0: only dense CPU tensors can be pinned");
  const Tensor leaf = ones({2}).requires_grad_();
  leaf.pin_memory(kThere).mul(3).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(full({2}, 3.f)));
  EXPECT_TRUE(zeros({2, 3}, TensorOptions().pinned_memory(true)).is_pinned(kThere)) << "of the device that is open";
  const TensorOptions last = TensorOptions().pinned_memory(true).memory_format(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(empty({1, 2, 3, 4}, last).is_pinned());
  EXPECT_TRUE(empty({1, 2, 3, 4}, last).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(message_of([] { zeros({2}, TensorOptions(kThere).pinned_memory(true)); }),
            "pinned_memory on simulated:0: only dense CPU tensors can be pinned");
}

}  // namespace
}  // namespace tenon::test
