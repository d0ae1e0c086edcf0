// Reductions by dtype.
#include "types.h"

#include "check.h"

#include <tenon/core/half.h>

#include <map>
#include <type_traits>
#include <utility>

namespace tenon::mpi {
namespace {

template <ReduceOp op, class T>
T reduced(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return op == ReduceOp::kSum || op == ReduceOp::kMax ? a || b : a && b;
  } else if constexpr (op == ReduceOp::kSum) {
    return static_cast<T>(a + b);
  } else if constexpr (op == ReduceOp::kProduct) {
    return static_cast<T>(a * b);
  } else if constexpr (op == ReduceOp::kMin) {
    return b < a ? b : a;
  } else {
    return a < b ? b : a;
  }
}

template <ReduceOp op, class T>
void combine_all(T* into, const T* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      into[i] = T(reduced<op>(static_cast<float>(into[i]), static_cast<float>(from[i])));
    } else {
      into[i] = reduced<op>(into[i], from[i]);
    }
  }
}

template <ReduceOp op>
void combine_as(Dtype dtype, void* into, const void* from, std::size_t count) {
  switch (dtype) {
#define TENON_COMBINE(type, constant) \
  case Dtype::constant:               \
    return combine_all<op>(static_cast<type*>(into), static_cast<const type*>(from), count);
    TENON_FOR_EACH_DTYPE(TENON_COMBINE)
#undef TENON_COMBINE
  }
}

/// What MPI calls for an operation of ours; `inout` is the right operand.
template <ReduceOp op, class T>
void for_mpi(void* in, void* inout, int* count, MPI_Datatype*) {
  combine_all<op>(static_cast<T*>(inout), static_cast<const T*>(in), static_cast<std::size_t>(*count));
}

template <class T>
MPI_User_function* function_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return &for_mpi<ReduceOp::kSum, T>;
    case ReduceOp::kProduct:
      return &for_mpi<ReduceOp::kProduct, T>;
    case ReduceOp::kMin:
      return &for_mpi<ReduceOp::kMin, T>;
    case ReduceOp::kMax:
      return &for_mpi<ReduceOp::kMax, T>;
  }
  return nullptr;
}

}  // namespace

MPI_Datatype type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return MPI_C_BOOL;
    case Dtype::kUInt8:
      return MPI_UINT8_T;
    case Dtype::kInt8:
      return MPI_INT8_T;
    case Dtype::kInt16:
      return MPI_INT16_T;
    case Dtype::kInt32:
      return MPI_INT32_T;
    case Dtype::kInt64:
      return MPI_INT64_T;
    case Dtype::kFloat16:
    case Dtype::kBFloat16:
      return MPI_UINT16_T;
    case Dtype::kFloat32:
      return MPI_FLOAT;
    case Dtype::kFloat64:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op op_of(ReduceOp op, Dtype dtype) {
  if (dtype == Dtype::kBool) return op == ReduceOp::kSum || op == ReduceOp::kMax ? MPI_LOR : MPI_LAND;
  if (dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16) {
    static auto& made = *new std::map<std::pair<ReduceOp, Dtype>, MPI_Op>;
    MPI_Op& known = made.try_emplace({op, dtype}, MPI_OP_NULL).first->second;
    if (known == MPI_OP_NULL)
      check(MPI_Op_create(dtype == Dtype::kFloat16 ? function_of<Half>(op) : function_of<BFloat16>(op), /*commute=*/1,
                          &known),
            "MPI_Op_create");
    return known;
  }
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kProduct:
      return MPI_PROD;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

void combine(ReduceOp op, Dtype dtype, void* into, const void* from, std::size_t count) {
  switch (op) {
    case ReduceOp::kSum:
      return combine_as<ReduceOp::kSum>(dtype, into, from, count);
    case ReduceOp::kProduct:
      return combine_as<ReduceOp::kProduct>(dtype, into, from, count);
    case ReduceOp::kMin:
      return combine_as<ReduceOp::kMin>(dtype, into, from, count);
    case ReduceOp::kMax:
      return combine_as<ReduceOp::kMax>(dtype, into, from, count);
  }
}

}  // namespace tenon::mpi
