// The libraries' handles of one device, made when they are first needed and destroyed with its driver, and what the
// libraries said of problems that have been met.
#pragma once

#include "kernels/libraries/remembered.h"

#include <cublasLt.h>

#include <cstddef>
#include <mutex>
#include <vector>

struct cudnnContext;  // cudnnHandle_t points to it; a build without cudnn.h has none

namespace tenon::cuda {

struct ProductChoice {
  bool possible = false;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
};

struct ConvolutionChoice {
  bool possible = false;
  int algorithm = 0;
  int math = 0;
  std::size_t workspace_bytes = 0;
};

/// The device's context is current wherever this is used or destroyed.
class LibraryHandles {
 public:
  LibraryHandles() = default;
  ~LibraryHandles();
  LibraryHandles(const LibraryHandles&) = delete;
  LibraryHandles& operator=(const LibraryHandles&) = delete;

  /// One for all threads and streams, as cuBLASLt has it.
  cublasLtHandle_t cublaslt();

  /// One that no other thread uses: cuDNN's are for one at a time. Given back when it goes.
  class Borrowed {
   public:
    Borrowed(LibraryHandles& owner, cudnnContext* handle) : owner_(owner), handle_(handle) {}
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    cudnnContext* get() const { return handle_; }

   private:
    LibraryHandles& owner_;
    cudnnContext* handle_;
  };
  Borrowed cudnn();

  Remembered<ProductChoice> products;
  Remembered<ConvolutionChoice> convolutions;

 private:
  std::mutex mutex_;  // guards what follows
  cublasLtHandle_t cublaslt_ = nullptr;
  std::vector<cudnnContext*> idle_;
};

}  // namespace tenon::cuda
