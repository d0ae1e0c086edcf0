// What users choose between speed and exactness, by the names that PyTorch's users know.
#pragma once

namespace tenon::cuda {

struct Switches {
  bool matmul_allow_tf32 = false;   ///< torch.backends.cuda.matmul.allow_tf32
  bool cudnn_allow_tf32 = true;     ///< torch.backends.cudnn.allow_tf32
  bool cudnn_benchmark = false;     ///< torch.backends.cudnn.benchmark
  bool cudnn_deterministic = true;  ///< torch.backends.cudnn.deterministic, whose default is the other way round
};

}  // namespace tenon::cuda
