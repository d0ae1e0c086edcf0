// Handles are made and destroyed here only.
#include "kernels/libraries/handles.h"

#include "context.h"
#include "kernels/libraries/cublaslt.h"
#include "kernels/libraries/cudnn.h"

namespace tenon::cuda {

LibraryHandles::~LibraryHandles() {
  if (cublaslt_ != nullptr) tenon::cuda::cublaslt().destroy(cublaslt_);
  for (cudnnContext* handle : idle_) destroy_cudnn(handle);
}

cublasLtHandle_t LibraryHandles::cublaslt() {
  const std::lock_guard lock(mutex_);
  if (cublaslt_ == nullptr) {
    const WhileCapturing allowed;
    const CublasLt& library = tenon::cuda::cublaslt();
    library.check(library.create(&cublaslt_), "cublasLtCreate");
  }
  return cublaslt_;
}

LibraryHandles::Borrowed LibraryHandles::cudnn() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    const WhileCapturing allowed;
    return {*this, create_cudnn()};
  }
  cudnnContext* const handle = idle_.back();
  idle_.pop_back();
  return {*this, handle};
}

LibraryHandles::Borrowed::~Borrowed() {
  const std::lock_guard lock(owner_.mutex_);
  owner_.idle_.push_back(handle_);
}

}  // namespace tenon::cuda
