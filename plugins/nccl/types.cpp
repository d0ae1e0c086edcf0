// Tables.
#include "types.h"

#include <tenon/core/error.h>

#include <fmt/format.h>

namespace tenon::nccl {
namespace {

bool reduces(CommKind kind) { return kind == CommKind::kAllReduce || kind == CommKind::kReduceScatter; }

}  // namespace

Elements elements_of(const CommRequest& request) {
  if (!reduces(request.kind)) return {.type = kNcclUint8, .count = request.count * size_of(request.dtype)};
  const auto of = [&](DataType type) { return Elements{.type = type, .count = request.count}; };
  switch (request.dtype) {
    case Dtype::kBool:
    case Dtype::kUInt8:
      return of(kNcclUint8);
    case Dtype::kInt8:
      return of(kNcclInt8);
    case Dtype::kInt32:
      return of(kNcclInt32);
    case Dtype::kInt64:
      return of(kNcclInt64);
    case Dtype::kFloat16:
      return of(kNcclFloat16);
    case Dtype::kBFloat16:
      return of(kNcclBfloat16);
    case Dtype::kFloat32:
      return of(kNcclFloat32);
    case Dtype::kFloat64:
      return of(kNcclFloat64);
    default:
      throw Error(fmt::format("{}: NCCL reduces no {}: convert it to int32 first", name_of(request.kind),
                              name_of(request.dtype)));
  }
}

RedOp op_of(const CommRequest& request) {
  const bool is_bool = request.dtype == Dtype::kBool;
  switch (request.op) {
    case ReduceOp::kSum:
      return is_bool ? kNcclMax : kNcclSum;
    case ReduceOp::kProduct:
      return is_bool ? kNcclMin : kNcclProd;
    case ReduceOp::kMin:
      return kNcclMin;
    case ReduceOp::kMax:
      return kNcclMax;
  }
  return kNcclSum;
}

}  // namespace tenon::nccl
