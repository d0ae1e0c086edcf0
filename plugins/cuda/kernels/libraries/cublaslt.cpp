// cuBLASLt, looked up by name.
#include "kernels/libraries/cublaslt.h"

#include "check.h"
#include "kernels/libraries/library.h"

namespace tenon::cuda {

namespace {

CublasLt look_up_cublaslt() {
  static Library library({"libcublasLt.so.13", "libcublasLt.so.12"}, "matrix products");
  CublasLt found;
  library.find(found.create, "cublasLtCreate");
  library.find(found.destroy, "cublasLtDestroy");
  library.find(found.status_string, "cublasLtGetStatusString");
  library.find(found.desc_create, "cublasLtMatmulDescCreate");
  library.find(found.desc_destroy, "cublasLtMatmulDescDestroy");
  library.find(found.desc_set, "cublasLtMatmulDescSetAttribute");
  library.find(found.layout_create, "cublasLtMatrixLayoutCreate");
  library.find(found.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.find(found.layout_set, "cublasLtMatrixLayoutSetAttribute");
  library.find(found.preference_create, "cublasLtMatmulPreferenceCreate");
  library.find(found.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.find(found.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.find(found.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(found.matmul, "cublasLtMatmul");
  found.usable = library.usable();
  return found;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt found = look_up_cublaslt();
  return found;
}

void CublasLt::check(cublasStatus_t status, std::string_view what, const std::source_location& where) const {
  if (status != CUBLAS_STATUS_SUCCESS) fail(what, "cuBLASLt", status_string(status), where);
}

}  // namespace tenon::cuda
