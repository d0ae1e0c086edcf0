// The lines that set PyTorch's allocator.
#include <tenon/report/replay/export_lines.h>

#include <fmt/format.h>

namespace tenon {

std::string export_lines(const std::string& conf) {
  return fmt::format(
      "  export PYTORCH_ALLOC_CONF=\"{0}\"\n"
      "  export PYTORCH_CUDA_ALLOC_CONF=\"{0}\"   # through PyTorch 2.9.x, and for vLLM\n",
      conf);
}

}  // namespace tenon
