// NVTX is header-only: it finds the tool that listens, if any, by itself.
#include "nvtx.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define TENON_HAS_NVTX 1
#else
#define TENON_HAS_NVTX 0
#endif

#include <string>

namespace tenon::cuda {
namespace {

/// Ranges that this thread has open: a scope that was entered before anyone listened has none to close.
constinit thread_local int open_ranges = 0;

[[maybe_unused]] std::string range_name(const scopes::Entered& scope) {
  if (scope.kind == scopes::Kind::kOperator) return std::string("aten::") + scope.name;
  if (scope.kind == scopes::Kind::kModule) return "module " + scopes::module_path(scope.context);
  return scope.name;
}

}  // namespace

bool has_nvtx() { return TENON_HAS_NVTX != 0; }

NvtxRanges::NvtxRanges() { scopes::add_listener(*this, scopes::kWantsScopes); }
NvtxRanges::~NvtxRanges() { scopes::remove_listener(*this); }

void NvtxRanges::entered([[maybe_unused]] const scopes::Entered& scope) noexcept {
#if TENON_HAS_NVTX
  try {
    nvtxRangePushA(range_name(scope).c_str());
    ++open_ranges;
  } catch (...) {
    return;  // no memory for the name
  }
#endif
}

void NvtxRanges::left(scopes::Kind /*kind*/, scopes::ContextId /*context*/) noexcept {
  if (open_ranges == 0) return;
  --open_ranges;
#if TENON_HAS_NVTX
  nvtxRangePop();
#endif
}

void NvtxRanges::marked([[maybe_unused]] std::string_view name) noexcept {
#if TENON_HAS_NVTX
  try {
    nvtxMarkA(std::string(name).c_str());
  } catch (...) {
    return;
  }
#endif
}

}  // namespace tenon::cuda
