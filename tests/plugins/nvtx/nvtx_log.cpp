// A tool that listens to NVTX, as Nsight does: it is loaded by NVTX itself (NVTX_INJECTION64_PATH), and writes down the
// ranges that are pushed.
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace {

std::string& log_text() {
  static auto* text = new std::string;
  return *text;
}

int push(const char* name) {
  log_text() += std::string("+") + name + "\n";
  return 0;
}
int pop() {
  log_text() += "-\n";
  return 0;
}

}  // namespace

extern "C" {

/// What was pushed and popped so far; and forgets it.
__attribute__((visibility("default"))) const char* tenon_nvtx_log(void) {
  static auto* taken = new std::string;
  *taken = log_text();
  log_text().clear();
  return taken->c_str();
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
}
