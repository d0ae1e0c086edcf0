// What an index takes, and what is said of one that does not fit: numbers, slices, truth values, masks and positions.
#include "../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>
#include <tenon/tensor/shape/indexing.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using namespace indexing;
using Sizes = std::vector<std::int64_t>;
using Positions = std::vector<std::optional<Tensor>>;

Tensor rows_of_three() { return arange(6).view({2, 3}); }

template <class T>
std::string as_written(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

TEST(IndexRules, ANewDimensionStandsWhereNoneStands) {
  const Tensor x = rows_of_three();
  EXPECT_EQ(x.index({None, Slice(0, 1)}).sizes().vec(), (Sizes{1, 1, 3}));
  EXPECT_EQ(x.index({Slice(), None, Slice(0, 2)}).sizes().vec(), (Sizes{2, 1, 2}));
  EXPECT_EQ(x.index({None, None, 1}).sizes().vec(), (Sizes{1, 1, 3}));
  EXPECT_EQ(x.index({1, None, Slice(1, 3)}).sizes().vec(), (Sizes{1, 2}));
  EXPECT_TRUE(x.index({None, 1, None, 2}).equal(tensor({{5}})));
  EXPECT_TRUE(x.index({None, tensor({1, 0})}).equal(x.flip(0).unsqueeze(0)));
  EXPECT_TRUE(x.index({Slice(), None, tensor({2, 0})}).equal(tensor({{{2, 0}}, {{5, 3}}})));
}

TEST(IndexRules, SlicesOneAfterTheOtherTakeOneDimensionEach) {
  const Tensor x = arange(24).view({2, 3, 4});
  EXPECT_TRUE(x.index({Slice(1, 2), Slice(0, 1), Slice(2, 4)}).equal(tensor({{{14, 15}}})));
  EXPECT_TRUE(x.index({Slice(1, 2), Slice(2, 3), 0}).equal(tensor({{20}})));
  EXPECT_TRUE(x.index({Slice(-1, None), Ellipsis, Slice(None, None, 3)}).equal(x.slice(0, 1).slice(2, 0, 4, 3)));
  EXPECT_TRUE(x.index({Slice(), Slice(0, 3), Slice(0, 4)}).equal(x)) << "the whole of each";
  EXPECT_TRUE(x.index({Slice(0, 2), Slice(0, 2), 1}).equal(x.select(2, 1).slice(1, 0, 2)));
  EXPECT_EQ(x.index({Slice(2, 2), Slice(5, 9)}).sizes().vec(), (Sizes{0, 0, 4})) << "past the end nothing is left";
  EXPECT_TRUE(x.index({Slice(0, INDEX_MAX, 2)}).equal(x.slice(0, 0, 1)));
}

TEST(IndexRules, ATensorOfOneIntegerSelectsAsItsNumberDoes) {
  const Tensor x = rows_of_three();
  for (const Dtype dtype : {kInt8, kInt16, kInt32, kInt64}) {
    const Tensor one = tensor(1).to(dtype), last = tensor(-1).to(dtype);
    EXPECT_TRUE(x.index({one}).equal(tensor({3, 4, 5}))) << toString(dtype);
    EXPECT_TRUE(x.index({Slice(), one}).equal(tensor({1, 4}))) << toString(dtype);
    EXPECT_TRUE(x.index({one, last}).equal(tensor(5))) << toString(dtype);
    EXPECT_TRUE(x.index({Ellipsis, last}).is_alias_of(x)) << "a view, not a copy";
    EXPECT_EQ(x.index({None, one}).sizes().vec(), (Sizes{1, 3}));
  }
  EXPECT_TRUE(x.index({tensor(-2)}).equal(x[0]));
  EXPECT_TRUE(x.index({Slice(), tensor(-3)}).equal(x.select(1, 0)));
}

TEST(IndexRules, ANumberOutOfBoundsIsNamedWithItsPlaceAndTheSizeThere) {
  const Tensor x = rows_of_three();
  const auto said = [&](std::initializer_list<TensorIndex> indices) {
    return message_of<IndexError>([&] { x.index(indices); });
  };
  const std::string below = " is out of bounds for dimension ";
  EXPECT_EQ(said({2}), "index 2" + below + "0 with size 2");
  EXPECT_EQ(said({-3}), "index -3" + below + "0 with size 2");
  EXPECT_EQ(said({Slice(), 3}), "index 3" + below + "1 with size 3");
  EXPECT_EQ(said({0, -4}), "index -4" + below + "1 with size 3");
  EXPECT_EQ(said({tensor(2)}), "index 2" + below + "0 with size 2");
  EXPECT_EQ(said({tensor(-3)}), "index -3" + below + "0 with size 2");
  EXPECT_EQ(said({Slice(), tensor(3)}), "index 3" + below + "1 with size 3");
  EXPECT_EQ(said({Slice(), tensor(-4)}), "index -4" + below + "1 with size 3");
  EXPECT_EQ(said({0, 0, tensor(0)}), "too many indices for tensor of dimension 2");
  EXPECT_EQ(said({0, 0, 0, Ellipsis}), "too many indices for tensor of dimension 2");
}

TEST(IndexRules, ATensorWithoutDimensionsTakesNoNumberAndNoSlice) {
  const Tensor x = tensor(5);
  EXPECT_EQ(message_of<IndexError>([&] { x.index({0}); }),
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number");
  EXPECT_EQ(message_of<IndexError>([&] { x.index({Slice()}); }), "slice() cannot be applied to a 0-dim tensor.");
  EXPECT_TRUE(x.index({Ellipsis}).equal(x));
  EXPECT_TRUE(x.index({None}).equal(tensor({5})));
  EXPECT_TRUE(x.index({true}).equal(tensor({5})));
  EXPECT_EQ(x.index({false}).numel(), 0);
}

TEST(IndexRules, ATruthValueAddsADimensionThatItKeepsOrEmpties) {
  const Tensor x = rows_of_three();
  for (const bool from_tensor : {false, true}) {
    const TensorIndex yes = from_tensor ? TensorIndex(tensor(true)) : TensorIndex(true);
    const TensorIndex no = from_tensor ? TensorIndex(tensor(0, kUInt8)) : TensorIndex(false);
    EXPECT_TRUE(x.index({yes}).equal(x.unsqueeze(0)));
    EXPECT_EQ(x.index({no}).sizes().vec(), (Sizes{0, 2, 3}));
    EXPECT_EQ(x.index({Slice(), yes}).sizes().vec(), (Sizes{2, 1, 3}));
    EXPECT_EQ(x.index({1, no}).sizes().vec(), (Sizes{0, 3}));
    EXPECT_TRUE(x.index({yes, tensor({1, 0})}).equal(x.flip(0))) << "it broadcasts with positions";
    EXPECT_FALSE(x.index({yes}).is_alias_of(x)) << "a copy, as of positions";
    Tensor written = x.clone();
    written.index_put_({no}, 9);
    EXPECT_TRUE(written.equal(x)) << "nothing is written";
    written.index_put_({yes}, 9);
    EXPECT_TRUE(written.equal(full({2, 3}, 9, kInt64)));
  }
}

TEST(IndexRules, AMaskTakesAsManyDimensionsAsItHasAndLaterIndicesFollow) {
  const Tensor x = arange(24).view({2, 3, 4});
  const Tensor mask = tensor({{true, false, false}, {false, false, true}});
  EXPECT_TRUE(x.index({mask}).equal(stack({x[0][0], x[1][2]})));
  EXPECT_TRUE(x.index({mask, tensor({1, 3})}).equal(tensor({1, 23})));
  EXPECT_TRUE(x.index({mask, 2}).equal(tensor({2, 22})));
  EXPECT_TRUE(x.index({mask, Slice(1, 3)}).equal(tensor({{1, 2}, {21, 22}})));
  EXPECT_TRUE(x.index({1, tensor({false, true, false}), Slice(0, 2)}).equal(tensor({{16, 17}})));
  EXPECT_EQ(message_of<IndexError>([&] { x.index({mask.t()}); }),
            "The shape of the mask [3, 2] at index 0 does not match the shape of the indexed tensor [2, 3, 4] at index "
            "0");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({Slice(), zeros({3, 5}, kBool)});
            }),
            "The shape of the mask [3, 5] at index 1 does not match the shape of the indexed tensor [2, 3, 4] at index "
            "2");
}

TEST(IndexRules, PositionsAreIntegersThatBroadcastAndExist) {
  const Tensor x = rows_of_three();
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({tensor({0., 1.})});
            }),
            "tensors used as indices must be long, int, byte or bool tensors");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({tensor({0, 1}), tensor({0, 1, 2})});
            }),
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({tensor({0}), tensor({0}), tensor({0})});
            }),
            "too many indices for tensor of dimension 2 (got 3)");
  EXPECT_EQ(x.index({zeros({0}, kInt64)}).sizes().vec(), (Sizes{0, 3}));
  const Tensor none = zeros({0, 3});
  EXPECT_EQ(none.index({zeros({0}, kInt64)}).sizes().vec(), (Sizes{0, 3})) << "no position of no row";
  EXPECT_EQ(message_of<IndexError>([&] { none.index({tensor({0})}); }),
            "index is out of bounds for dimension with size 0 (dimension 0)");
}

TEST(IndexRules, WhereNothingIsIndexedTheTensorItselfIsSeen) {
  const Tensor x = rows_of_three();
  EXPECT_TRUE(tenon::index(x, Positions{std::nullopt}).equal(x));
  EXPECT_TRUE(tenon::index(x, Positions{Tensor(), std::nullopt}).equal(x));
  EXPECT_TRUE(tenon::index(x, Positions{}).is_alias_of(x));
  EXPECT_TRUE(tenon::index(x, Positions{std::nullopt, tensor({2, 0})}).equal(tensor({{2, 0}, {5, 3}})));
  EXPECT_TRUE(tenon::index(x, Positions{Tensor(), tensor({2, 0})}).equal(tensor({{2, 0}, {5, 3}})));
  EXPECT_TRUE(tenon::index(x, Positions{tensor({1}), std::nullopt}).equal(tensor({{3, 4, 5}})));
}

TEST(IndexRules, NoIndexAtAllIsRefused) {
  Tensor x = rows_of_three();
  const std::vector<TensorIndex> none;
  EXPECT_EQ(message_of([&] { x.index(none); }), "Passing an empty index list to Tensor::index() is not valid syntax");
  const std::string put = "Passing an empty index list to Tensor::index_put_() is not valid syntax";
  EXPECT_EQ(message_of([&] { x.index_put_(none, tensor(1)); }), put);
  EXPECT_EQ(message_of([&] { x.index_put_(none, 1); }), put);
  EXPECT_TRUE(x.equal(rows_of_three())) << "nothing has been written";
}

TEST(IndexPut, WhatDoesNotBroadcastToThePlacesIsRefusedWithBothShapes) {
  Tensor x = rows_of_three();
  const std::string text = "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape ";
  EXPECT_EQ(message_of([&] { x.index_put_({tensor({0, 1})}, tensor({7, 8})); }), text + "[2, 3]");
  EXPECT_EQ(message_of([&] { x.index_put_({Slice(), tensor({0, 1, 2})}, tensor({7, 8})); }), text + "[2, 3]");
  EXPECT_EQ(message_of([&] { x.index_put_({x > 2}, tensor({7, 8})); }), text + "[3]");
  EXPECT_TRUE(x.equal(rows_of_three())) << "nothing has been written";
  x.index_put_({tensor({1, 0})}, tensor({{7}, {8}}));
  EXPECT_TRUE(x.equal(tensor({{8, 8, 8}, {7, 7, 7}})));
  x.index_put_({tensor({1})}, tensor({1, 2, 3}).view({1, 1, 1, 3}));
  EXPECT_TRUE(x.equal(tensor({{8, 8, 8}, {1, 2, 3}}))) << "leading ones are dropped";
}

TEST(IndexPut, WithoutTensorsAViewIsWritten) {
  Tensor x = rows_of_three();
  EXPECT_TRUE(x.index_put_({1}, tensor({7, 8, 9})).is_same(x));
  x.index_put_({Slice(), 0}, tensor({{{5, 6}}}));
  EXPECT_TRUE(x.equal(tensor({{5, 1, 2}, {6, 8, 9}})));
  x.index_put_({0, Slice(1, None)}, 3);
  EXPECT_TRUE(x.equal(tensor({{5, 3, 3}, {6, 8, 9}})));
  x.index_put_({Ellipsis}, 0);
  EXPECT_EQ(x.count_nonzero().item<std::int64_t>(), 0);
}

TEST(IndexPut, NoPositionsAddOrWriteEverything) {
  Tensor x = rows_of_three();
  x.index_put_(Positions{std::nullopt}, tensor({1, 2, 3}), true);
  EXPECT_TRUE(x.equal(tensor({{1, 3, 5}, {4, 6, 8}})));
  x.index_put_(Positions{std::nullopt}, tensor({1, 2, 3}), false);
  EXPECT_TRUE(x.equal(tensor({{1, 2, 3}, {1, 2, 3}})));
}

TEST(IndexPut, ALeafThatWantsItsGradientAndItsViewsAreNotWritten) {
  Tensor leaf = ones({2, 3}).set_requires_grad(true);
  const Positions first{tensor({0})};
  EXPECT_EQ(message_of([&] { leaf.index_put_(first, tensor(2.f)); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(message_of([&] {
              leaf.view({3, 2}).index_put_(first, tensor(2.f));
            }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_TRUE(leaf.equal(ones({2, 3}))) << "nothing has been written";
  NoGradGuard no_grad;
  leaf.index_put_(first, tensor(2.f));
  EXPECT_EQ(leaf.sum().item<float>(), 9);
}

TEST(IndexPut, AViewOfSeveralIsNotWrittenWithValuesThatWantAGradient) {
  const Tensor whole = ones({4});
  const Tensor part = whole.chunk(2)[0], value = tensor(2.f).set_requires_grad(true);
  const auto write = [&] { part.index_put_(Positions{tensor({0})}, value); };
  EXPECT_THAT(message_of(write), ::testing::HasSubstr("the output of a function that returns multiple views"));
  EXPECT_TRUE(whole.equal(ones({4}))) << "nothing has been written";
  part.index_put_(Positions{tensor({0})}, tensor(2.f));
  EXPECT_TRUE(whole.equal(tensor({2.f, 1.f, 1.f, 1.f}))) << "one that wants none is";
}

TEST(IndexPut, SourceAndDestinationHaveOneDtype) {
  Tensor x = zeros({3});
  EXPECT_EQ(message_of([&] { x.index_put_(Positions{tensor({0})}, tensor(2, kInt64)); }),
            "Index put requires the source and destination dtypes match, got Float for the destination and Long for "
            "the source.");
  x.index_put_({tensor({true, false, true})}, tensor(2, kInt64));
  EXPECT_TRUE(x.equal(tensor({2.f, 0.f, 2.f}))) << "one value under a mask is a fill, which takes any dtype";
}

TEST(IndexPut, LeadingOnesOfTheValuesComeBackInTheirGradient) {
  const Tensor values = tensor({{{1.f, 2.f, 3.f}}}).set_requires_grad(true);
  const Tensor written = zeros({2, 3}).index_put(Positions{tensor({0, 1})}, values);
  (written * tensor({{1.f, 2.f, 3.f}, {10.f, 20.f, 30.f}})).sum().backward();
  EXPECT_TRUE(values.grad().equal(tensor({{{11.f, 22.f, 33.f}}})));
}

TEST(MaskedSelect, TensorAndMaskBroadcastAgainstEachOther) {
  const Tensor x = rows_of_three(), row = tensor({true, false, true}), column = tensor({{false}, {true}});
  EXPECT_TRUE(x.masked_select(row).equal(tensor({0, 2, 3, 5})));
  EXPECT_TRUE(x.masked_select(column).equal(tensor({3, 4, 5})));
  EXPECT_TRUE(tensor({1, 2, 3}).masked_select(column).equal(tensor({1, 2, 3})));
  EXPECT_TRUE(tensor({{1}, {2}}).masked_select(row).equal(tensor({1, 1, 2, 2})));
  EXPECT_TRUE(tensor(7).masked_select(row).equal(tensor({7, 7})));
  EXPECT_EQ(x.masked_select(tensor(false)).sizes().vec(), (Sizes{0}));
  EXPECT_THROW(x.masked_select(tensor({true, false})), Error);
  EXPECT_THROW(x.masked_select(zeros({2, 2}, kBool)), Error);
}

/// An operator that is recorded with an index, and a write to that index.
struct Indexed {
  std::string name;
  std::function<Tensor(const Tensor& x)> run;
  std::function<void()> write;
  std::int64_t saved = 1;  ///< how many tensors
};

std::vector<Indexed> recorded_with_an_index() {
  const Tensor positions = tensor({0, 2}), columns = tensor({2, 0}), mask = tensor({true, false, true});
  const Tensor values = ones({2}).set_requires_grad(true);
  const auto other_positions = [=] { Tensor(positions).fill_(1); };
  const auto other_mask = [=] { Tensor(mask).logical_not_(); };
  return {
      {"index", [=](const Tensor& x) { return x.index({positions}); }, other_positions},
      {"index of the third dimension",
       [=](const Tensor& x) {
         return x.view({1, 1, 3}).index({Slice(), Slice(), positions});
       },
       other_positions},
      {"index by two",
       [=](const Tensor& x) {
         return x.expand({3, 3}).index({columns, positions});
       },
       other_positions, 2},
      {"index by a mask", [=](const Tensor& x) { return x.index({mask}); }, other_mask},
      {"masked_select", [=](const Tensor& x) { return x.masked_select(mask); }, other_mask},
      {"take", [=](const Tensor& x) { return x.take(positions); }, other_positions},
      {"index_put", [=](const Tensor& x) { return (x * 1).index_put(Positions{positions}, values); }, other_positions},
      {"index_put by a mask", [=](const Tensor& x) { return (x * 1).index_put(Positions{mask}, values); }, other_mask},
      {"index_put of values alone",
       [=](const Tensor& x) { return zeros({3}).index_put(Positions{positions}, x.narrow(0, 0, 2), true); },
       other_positions}};
}

TEST(IndexGradient, AnIndexThatIsWrittenToBeforeBackwardIsRefused) {
  for (const Indexed& of : recorded_with_an_index()) {
    const Tensor x = ones({3}).set_requires_grad(true);
    const Tensor loss = of.run(x).sum();
    of.write();
    EXPECT_THAT(message_of([&] { loss.backward(); }),
                ::testing::HasSubstr("one of the variables needed for gradient computation has been modified by an "
                                     "inplace operation"))
        << of.name;
    EXPECT_FALSE(x.grad().defined()) << of.name;
  }
}

TEST(IndexGradient, AGraphThatIsNotKeptRunsOnce) {
  for (const Indexed& of : recorded_with_an_index()) {
    const Tensor x = ones({3}).set_requires_grad(true);
    const Tensor loss = of.run(x).sum();
    loss.backward({}, true);
    const Tensor once = x.grad().clone();
    loss.backward();
    EXPECT_TRUE(x.grad().equal(once * 2)) << of.name;
    EXPECT_THAT(message_of([&] { loss.backward(); }), ::testing::HasSubstr("Trying to backward through the graph a "))
        << of.name;
  }
}

TEST(IndexGradient, HooksOfSavedTensorsSeeTheIndicesAndGiveThemBack) {
  for (const Indexed& of : recorded_with_an_index()) {
    const Tensor x = ones({3}).set_requires_grad(true);
    of.run(x).sum().backward();
    const Tensor plain = std::exchange(x.mutable_grad(), Tensor());
    std::int64_t packed = 0;
    Tensor loss;
    {
      const autograd::SavedTensorHooksGuard guard(
          {.pack = [&](const Tensor& tensor) -> std::any {
             packed += !tensor.is_floating_point();
             return tensor.clone();
           },
           .unpack = [](const std::any& value) { return std::any_cast<Tensor>(value); }});
      loss = of.run(x).sum();
    }
    EXPECT_EQ(packed, of.saved) << of.name;
    of.write();
    loss.backward();
    EXPECT_TRUE(x.grad().equal(plain)) << of.name << ": the copy that the hook made has not been written to";
  }
}

TEST(IndexPut, MoreIndicesThanDimensionsAreRefusedWithAGradientToo) {
  const Tensor x = ones({2}).set_requires_grad(true) * 1;
  EXPECT_EQ(message_of<IndexError>([&] { x.index_put_(Positions(40, tensor({0})), tensor(2.f)); }),
            "too many indices for tensor of dimension 1 (got 40)");
}

TEST(IndexOperator, TakesWholeNumbersAndTensorsOfOne) {
  const Tensor x = rows_of_three();
  EXPECT_TRUE(x[Scalar(1)].equal(tensor({3, 4, 5})));
  EXPECT_TRUE(x[tensor(-1)].equal(tensor({3, 4, 5})));
  EXPECT_EQ(message_of<IndexError>([&] { x[Scalar(1.)]; }), "Can only index tensors with integral scalars");
  EXPECT_EQ(message_of<IndexError>([&] { x[tensor(1.)]; }), "Can only index tensors with integral scalars");
  EXPECT_EQ(message_of<IndexError>([&] { x[Tensor()]; }), "Can only index with tensors that are defined");
  EXPECT_EQ(message_of<IndexError>([&] { x[tensor({1})]; }), "Can only index with tensors that are scalars (zero-dim)");
}

TEST(IndexText, EveryKindOfIndexPrintsAsItIsWritten) {
  EXPECT_EQ(as_written(TensorIndex(None)), "None");
  EXPECT_EQ(as_written(TensorIndex(Ellipsis)), "...");
  EXPECT_EQ(as_written(TensorIndex("...")), "...");
  EXPECT_EQ(as_written(TensorIndex(-4)), "-4");
  EXPECT_EQ(as_written(TensorIndex(true)), "true");
  EXPECT_EQ(as_written(TensorIndex(false)), "false");
  EXPECT_EQ(as_written(TensorIndex(Slice(1, 5, 2))), "1:5:2");
  EXPECT_EQ(as_written(TensorIndex(Slice())), "0:9223372036854775807:1");
  EXPECT_EQ(as_written(TensorIndex(tensor({1, 2}))), as_written(tensor({1, 2})));
  EXPECT_EQ(as_written(std::vector<TensorIndex>{}), "()");
  EXPECT_EQ(as_written(std::vector<TensorIndex>{1}), "(1)");
  EXPECT_EQ(as_written(std::vector<TensorIndex>{None, 1, Ellipsis, Slice(0, 2)}), "(None, 1, ..., 0:2:1)");
  EXPECT_EQ(message_of([] { TensorIndex(".."); }), "Expected \"...\" to represent an ellipsis index, but got \"..\"");
}

}  // namespace
}  // namespace tenon::test
