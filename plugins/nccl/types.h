// Dtypes and reductions in NCCL's words.
#pragma once

#include "nccl_api.h"

#include <tenon/comm/communicator.h>

#include <cstddef>

namespace tenon::nccl {

/// What of a request is counted in: a value that is only moved goes as its bytes.
struct Elements {
  DataType type = kNcclUint8;
  std::size_t count = 0;
};

/// Throws Error for a reduction of a dtype that NCCL has not: int16.
Elements elements_of(const CommRequest& request);
/// On booleans sum and max are "or", product and min are "and".
RedOp op_of(const CommRequest& request);

}  // namespace tenon::nccl
