// What operators that take a tensor of positions share.
#pragma once

#include <tenon/ops/support/support.h>

#include <string>

namespace tenon::ops {

/// Throws Error unless `index` is int64 or int32.
inline void check_index_dtype(const Tensor& index, const char* op) {
  if (index.scalar_type() != kInt64 && index.scalar_type() != kInt32) {
    throw Error(std::string(op) + "(): Expected dtype int32/int64 for index, got " + toString(index.scalar_type()));
  }
}

/// The tensor, or a copy where it lies in the storage that is about to be written.
inline Tensor apart_from(const Tensor& written, const Tensor& read) {
  NoGradGuard no_grad;
  return read.is_alias_of(written) ? read.clone() : read;
}

}  // namespace tenon::ops
