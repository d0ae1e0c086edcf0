// Ranges for Nsight Systems: operators, backward nodes, modules, labels and phases of the program, on the thread that
// is in them (NVTX). Without a tool that listens, a range costs a call of a function that does nothing.
#pragma once

#include <tenon/core/scope/scope.h>

namespace tenon::cuda {

/// Pushes a range for every scope that is entered while it lives.
class NvtxRanges final : public scopes::Listener {
 public:
  NvtxRanges();
  ~NvtxRanges() override;
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  void entered(const scopes::Entered& scope) noexcept override;
  void left(scopes::Kind kind, scopes::ContextId context) noexcept override;
  void marked(std::string_view name) noexcept override;
};

/// Whether the headers of NVTX were there when this was built.
bool has_nvtx();

}  // namespace tenon::cuda
