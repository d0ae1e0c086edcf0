// Every arithmetic instruction that the interpreter knows, with edge values, against the reference.
#include "reference.h"

#include "support/emulated_cuda/ptx/operations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace tenon::ptx_test {
namespace {

using emulated_cuda::ptx::find_operation;
using emulated_cuda::ptx::known_opcodes;
using emulated_cuda::ptx::Operation;

References all_references() {
  References all;
  add_whole_references(all);
  add_float_references(all);
  add_half_references(all);
  return all;
}

Word masked(Word word, std::size_t bits) { return bits == 64 ? word : word & ((Word{1} << bits) - 1); }

/// Both nan: which one it is, PTX does not say.
bool both_nan(const std::string& opcode, Word a, Word b) {
  if (opcode.ends_with(".f32") || opcode.find(".f32.") != std::string::npos) {
    float x, y;
    std::memcpy(&x, &a, 4);
    std::memcpy(&y, &b, 4);
    if (std::isnan(x) && std::isnan(y)) return true;
  }
  double x, y;
  std::memcpy(&x, &a, 8);
  std::memcpy(&y, &b, 8);
  return opcode.find(".f64") != std::string::npos && std::isnan(x) && std::isnan(y);
}

TEST(PtxOperations, AreWhatTheHostComputes) {
  std::size_t compared = 0;
  for (const auto& [opcode, reference] : all_references()) {
    const Operation operation = find_operation(opcode);
    ASSERT_NE(operation.compute, nullptr) << opcode;
    EXPECT_EQ(operation.inputs, reference.inputs) << opcode;
    int wrong = 0;
    for (const Word carry_in : {0, 1}) {
      for (const Inputs& in : reference.cases) {
        Word carry = carry_in;
        const Word got = operation.compute(in.data(), carry);
        Inputs with_carry = in;
        with_carry.push_back(carry_in);
        const Word want = reference.want(with_carry);
        ++compared;
        if (masked(got, reference.result_bits) == masked(want, reference.result_bits) || both_nan(opcode, got, want))
          continue;
        if (++wrong > 3) break;
        char text[200];
        std::snprintf(text, sizeof text, "of %#llx %#llx %#llx: %#llx and not %#llx", (unsigned long long)in[0],
                      (unsigned long long)(in.size() > 1 ? in[1] : 0), (unsigned long long)(in.size() > 2 ? in[2] : 0),
                      (unsigned long long)got, (unsigned long long)want);
        ADD_FAILURE() << opcode << " " << text;
      }
    }
  }
  EXPECT_GT(compared, 100'000U);
}

TEST(PtxOperations, HaveAReferenceEach) {
  const References all = all_references();
  for (const std::string& opcode : known_opcodes()) EXPECT_TRUE(all.contains(opcode)) << opcode;
}

TEST(PtxOperations, CarryIntoTheNext) {
  // 0xffffffff'ffffffff'00000001 - (-1) and the like, in words of 32 bits.
  Word carry = 0;
  const Word ones[2] = {0xffffffff, 1};
  const Word zeros[2] = {0xffffffff, 0};
  EXPECT_EQ(find_operation("add.cc.u32").compute(ones, carry), 0U);
  EXPECT_EQ(carry, 1U);
  EXPECT_EQ(find_operation("addc.cc.u32").compute(zeros, carry), 0U);
  EXPECT_EQ(carry, 1U);
  EXPECT_EQ(find_operation("addc.u32").compute(zeros, carry), 0U);
  const Word less[2] = {0, 1};
  const Word none[2] = {0, 0};
  EXPECT_EQ(find_operation("sub.cc.u64").compute(less, carry), ~Word{0});
  EXPECT_EQ(carry, 1U);
  EXPECT_EQ(find_operation("subc.cc.u64").compute(none, carry), ~Word{0});
  EXPECT_EQ(carry, 1U);
  EXPECT_EQ(find_operation("sub.cc.u64").compute(none, carry), 0U);
  EXPECT_EQ(carry, 0U);
  const Word large[3] = {0xffffffff, 0xffffffff, 0xffffffff};
  EXPECT_EQ(find_operation("mad.lo.cc.u32").compute(large, carry), 0U);
  EXPECT_EQ(carry, 1U);
  EXPECT_EQ(find_operation("madc.hi.cc.u32").compute(large, carry), 0xfffffffeU);
  EXPECT_EQ(carry, 1U);
}

}  // namespace
}  // namespace tenon::ptx_test
