// What is said of operands whose sizes do not meet names them in the order in which they were given.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

TEST(BroadcastRules, SizesThatDoNotMeetAreNamedInOrder) {
  const Tensor three = ones({3}), four = ones({4}), mask = ones({4}, kBool), whole = ones({3}, kInt64);
  const Tensor whole_four = ones({4}, kInt64);
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"add", [&] { three.add(four); }},
      {"mul_", [&] { three.clone().mul_(four); }},
      {"eq", [&] { three.eq(four); }},
      {"pow", [&] { pow(three, four); }},
      {"bitwise_and", [&] { whole.bitwise_and(whole_four); }},
      {"bitwise_left_shift", [&] { whole.bitwise_left_shift(whole_four); }},
      {"gcd", [&] { whole.gcd(whole_four); }},
      {"nextafter", [&] { three.nextafter(four); }},
      {"xlogy", [&] { three.xlogy(four); }},
      {"where", [&] { where(ones({3}, kBool), four, four); }},
      {"where's values", [&] { where(ones({3}, kBool), three, four); }},
      {"where under a truth value", [&] { where(tensor(true), three, four); }},
      {"masked_fill", [&] { three.masked_fill(mask, 1); }},
      {"masked_fill_", [&] { three.clone().masked_fill_(mask, 1); }},
      {"masked_select", [&] { three.masked_select(mask); }},
      {"addcmul", [&] { three.addcmul(three, four); }},
      {"addcmul's first", [&] { three.addcmul(four, four); }},
      {"addcdiv_", [&] { three.clone().addcdiv_(four, four); }},
      {"lerp", [&] { three.lerp(four, 0.5); }},
      {"lerp's weight", [&] { three.lerp(three, four); }},
      {"copy_", [&] { three.clone().copy_(four); }},
      {"matmul",
       [] {
         matmul(ones({3, 2, 2}), ones({4, 2, 2}));
       }},
      {"cross",
       [] {
         cross(ones({3, 3}), ones({4, 3}), 1);
       }},
      {"broadcast_tensors",
       [&] {
         broadcast_tensors({three, four});
       }},
      {"attention",
       [] {
         scaled_dot_product_attention(ones({3, 2, 2}), ones({4, 2, 2}), ones({4, 2, 2}));
       }},
      {"attention's values",
       [] {
         scaled_dot_product_attention(ones({3, 2, 2}), ones({3, 2, 2}), ones({4, 2, 2}));
       }},
      {"cosine_similarity", [&] { cosine_similarity(three, four, 0, 1e-8); }},
      {"binary_cross_entropy_with_logits", [&] { binary_cross_entropy_with_logits(three, four, {}, {}, 1); }},
  };
  for (const auto& [name, call] : calls)
    EXPECT_THAT(message_of(call), testing::HasSubstr("The size of tensor a (3) must match the size of tensor b (4) at "
                                                     "non-singleton dimension 0"))
        << name;
}

TEST(BroadcastRules, InPlaceTheShapeOfTheTensorIsNamedFirst) {
  const Tensor row = ones({3}), matrix = ones({2, 3}), mask = ones({2, 3}, kBool);
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"add_", [&] { row.clone().add_(matrix); }},
      {"copy_", [&] { row.clone().copy_(matrix); }},
      {"masked_fill_", [&] { row.clone().masked_fill_(mask, 1); }},
      {"addcmul_", [&] { row.clone().addcmul_(matrix, row); }},
      {"lerp_", [&] { row.clone().lerp_(matrix, 0.5); }},
      {"xlogy_", [&] { row.clone().xlogy_(matrix); }},
      {"clamp_", [&] { row.clone().clamp_(std::optional(matrix), std::optional<Tensor>()); }},
      {"index_add_",
       [&] {
         zeros({2, 3}).index_add_(0, tensor({0}), ones({1, 2, 3}));
       }},
  };
  for (const auto& [name, call] : calls)
    EXPECT_THAT(message_of(call), testing::HasSubstr("output with shape [3] doesn't match the broadcast shape [2, 3]"))
        << name;
}

TEST(BroadcastRules, DevicesThatDoNotMeetAreNamedInOrder) {
  const TensorOptions there = TensorOptions(Device("simulated:0"));
  const Tensor here = ones({2, 2}), away = ones({2, 2}, there), places = zeros({2}, kInt64);
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"add", [&] { here.add(away); }},
      {"lt", [&] { here.lt(away); }},
      {"mm", [&] { mm(here, away); }},
      {"addmm", [&] { addmm(away, here, here); }},
      {"cat",
       [&] {
         cat({here, away});
       }},
      {"where", [&] { where(here.gt(0), away, away); }},
      {"addcmul", [&] { here.addcmul(away, away); }},
      {"lerp", [&] { here.lerp(away, 0.5); }},
      {"masked_fill", [&] { here.masked_fill(away.gt(0), 1); }},
      {"gather", [&] { here.gather(0, away.to(kInt64)); }},
      {"index_select", [&] { here.index_select(0, places.to(there)); }},
      {"index_add_",
       [&] {
         zeros({2, 2}).index_add_(0, places, away);
       }},
      {"conv1d",
       [] {
         conv1d(ones({1, 1, 4}), ones({1, 1, 2}, TensorOptions(Device("simulated:0"))));
       }},
      {"layer_norm", [&] { layer_norm(here, {2}, away[0]); }},
      {"cdist", [&] { cdist(here, away, 2, std::nullopt); }},
      {"equal", [&] { here.equal(away); }},
      {"nll_loss", [&] { nll_loss_nd(here, places.to(there), {}, 1, -100); }},
      {"searchsorted", [&] { searchsorted(here, away); }},
      {"isin", [&] { isin(here, away); }},
      {"grid_sampler",
       [] {
         grid_sampler(ones({1, 1, 2, 2}), ones({1, 1, 1, 2}, TensorOptions(Device("simulated:0"))), 0, 0, false);
       }},
  };
  for (const auto& [name, call] : calls) {
    const std::string said = message_of(call);
    EXPECT_THAT(said,
                testing::HasSubstr("Expected all tensors to be on the same device, but found at least two devices, "))
        << name;
    EXPECT_THAT(said, testing::HasSubstr("(in operator ")) << name;
    EXPECT_THAT(said,
                testing::AnyOf(testing::HasSubstr("cpu and simulated:0!"), testing::HasSubstr("simulated:0 and cpu!")))
        << name;
  }
}

}  // namespace
}  // namespace tenon::test
