// What NCCL is asked for: dtypes and reductions under its own numbers.
#include "types.h"

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::nccl {
namespace {

TEST(NcclTypes, WhatIsReducedIsCountedInItsElements) {
  const std::vector<std::pair<Dtype, DataType>> types = {
      {Dtype::kBool, kNcclUint8},        {Dtype::kUInt8, kNcclUint8},     {Dtype::kInt8, kNcclInt8},
      {Dtype::kInt32, kNcclInt32},       {Dtype::kInt64, kNcclInt64},     {Dtype::kFloat16, kNcclFloat16},
      {Dtype::kBFloat16, kNcclBfloat16}, {Dtype::kFloat32, kNcclFloat32}, {Dtype::kFloat64, kNcclFloat64}};
  for (const CommKind kind : {CommKind::kAllReduce, CommKind::kReduceScatter}) {
    for (const auto& [dtype, type] : types) {
      const Elements elements = elements_of({.kind = kind, .count = 7, .dtype = dtype});
      EXPECT_EQ(elements.type, type) << name_of(dtype);
      EXPECT_EQ(elements.count, 7U) << name_of(dtype);
    }
  }
}

TEST(NcclTypes, WhatIsMovedIsCountedInItsBytesWhateverItsDtype) {
  for (const CommKind kind : {CommKind::kBroadcast, CommKind::kAllGather, CommKind::kSend, CommKind::kReceive}) {
    for (const auto& [dtype, bytes] : std::vector<std::pair<Dtype, std::size_t>>{
             {Dtype::kBool, 7}, {Dtype::kInt16, 14}, {Dtype::kBFloat16, 14}, {Dtype::kFloat64, 56}}) {
      const Elements elements = elements_of({.kind = kind, .count = 7, .dtype = dtype});
      EXPECT_EQ(elements.type, kNcclUint8) << name_of(dtype);
      EXPECT_EQ(elements.count, bytes) << name_of(dtype);
    }
  }
}

TEST(NcclTypes, ADtypeThatNcclDoesNotReduceIsRefusedWithTheNextStep) {
  for (const CommKind kind : {CommKind::kAllReduce, CommKind::kReduceScatter}) {
    try {
      elements_of({.kind = kind, .count = 1, .dtype = Dtype::kInt16});
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                std::string(name_of(kind)) + ": NCCL reduces no int16: convert it to int32 first");
    }
  }
}

TEST(NcclTypes, ReductionsAreNcclsAndOfBooleansOrAndAnd) {
  const auto asked = [](ReduceOp op, Dtype dtype) {
    return op_of({.kind = CommKind::kAllReduce, .count = 1, .dtype = dtype, .op = op});
  };
  EXPECT_EQ(asked(ReduceOp::kSum, Dtype::kUInt8), kNcclSum);
  EXPECT_EQ(asked(ReduceOp::kProduct, Dtype::kFloat32), kNcclProd);
  EXPECT_EQ(asked(ReduceOp::kMin, Dtype::kFloat32), kNcclMin);
  EXPECT_EQ(asked(ReduceOp::kMax, Dtype::kFloat32), kNcclMax);
  EXPECT_EQ(asked(ReduceOp::kSum, Dtype::kBool), kNcclMax);
  EXPECT_EQ(asked(ReduceOp::kMax, Dtype::kBool), kNcclMax);
  EXPECT_EQ(asked(ReduceOp::kProduct, Dtype::kBool), kNcclMin);
  EXPECT_EQ(asked(ReduceOp::kMin, Dtype::kBool), kNcclMin);
}

}  // namespace
}  // namespace tenon::nccl
