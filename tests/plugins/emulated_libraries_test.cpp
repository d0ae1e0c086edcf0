// The stand-ins of NVIDIA's libraries: what a caller may not do ends the program with a sentence that says so.
#include "plugins/emulated_device.h"

#include <tenon/core/error.h>

#include <cublasLt.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace tenon::test {
namespace {

template <class Function>
Function* function_of(const char* library, const char* name) {
  void* const handle = ::dlopen((std::string(TENON_EMULATED_CUDA_LIBRARIES "/") + library).c_str(), RTLD_NOW);
  if (handle == nullptr) throw Error(::dlerror());
  return reinterpret_cast<Function*>(::dlsym(handle, name));
}
#define LT(name) function_of<decltype(name)>("libcublasLt.so.13", #name)

/// A product of two matrices of 16 by 16, every argument of which a case may spoil.
class EmulatedCublasLt : public EmulatedCuda {
 protected:
  void SetUp() override {
    EmulatedCuda::SetUp();
    memory_ = static_cast<float*>(memory(0).acquire(4 * kBytes));
    device(0).fill(memory_, 0, 4 * kBytes, {});
    for (std::size_t i = 0; i < 4; ++i) matrices_[i] = memory_ + i * kBytes / sizeof(float);
    workspace_ = all_workspace_ = memory(0).acquire(1 << 20);
    LT(cublasLtCreate)(&handle_);
    LT(cublasLtMatmulDescCreate)(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (auto& layout : layouts_) LT(cublasLtMatrixLayoutCreate)(&layout, CUDA_R_32F, 16, 16, 16);
    LT(cublasLtMatmulPreferenceCreate)(&preference_);
    const std::uint64_t most = 1 << 20;
    LT(cublasLtMatmulPreferenceSetAttribute)(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  }
  void TearDown() override {
    device(0).synchronize();
    memory(0).release(memory_, 4 * kBytes);
    memory(0).release(all_workspace_, 1 << 20);
    LT(cublasLtDestroy)(handle_);
    EmulatedCuda::TearDown();
  }

  cublasLtMatmulHeuristicResult_t found() {
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    LT(cublasLtMatmulAlgoGetHeuristic)
    (handle_, desc_, layouts_[0], layouts_[1], layouts_[2], layouts_[3], preference_, 1, &result, &count);
    return result;
  }
  void multiply(std::size_t workspace_bytes) {
    const auto result = found();
    LT(cublasLtMatmul)
    (handle_, desc_, alpha_, matrices_[0], layouts_[0], matrices_[1], layouts_[1], &zero_, matrices_[2], layouts_[2],
     matrices_[3], layouts_[3], &result.algo, workspace_, workspace_bytes, nullptr);
    device(0).synchronize();
  }
  std::size_t wanted() { return found().workspaceSize; }

  static constexpr std::size_t kBytes = 4096;
  float one_ = 1, zero_ = 0;
  const void* alpha_ = &one_;
  float* memory_ = nullptr;
  std::array<float*, 4> matrices_{};
  void *workspace_ = nullptr, *all_workspace_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  std::array<cublasLtMatrixLayout_t, 4> layouts_{};
  cublasLtMatmulPreference_t preference_ = nullptr;
};

TEST_F(EmulatedCublasLt, MultipliesWhereAllIsRight) {
  multiply(wanted());
  EXPECT_EQ(fetch(0, matrices_[3], 4)[0], 0);
}

TEST_F(EmulatedCublasLt, AWorkspaceThatIsTooSmallOrNotAlignedIsFound) {
  EXPECT_DEATH(multiply(wanted() - 1), "the workspace has 8191 bytes, and the algorithm wants 8192");
  workspace_ = static_cast<char*>(workspace_) + 64;
  EXPECT_DEATH(multiply(wanted()), "the workspace at .* is not aligned to 256 bytes");
}

TEST_F(EmulatedCublasLt, AWorkspaceBeyondItsMemoryIsFound) {
  workspace_ = static_cast<char*>(workspace_) + (1 << 20) - 4096;
  EXPECT_DEATH(multiply(wanted()), "workspace.* beyond the end of its memory");
}

TEST_F(EmulatedCublasLt, MemoryOfTheHostIsFound) {
  float host[256] = {};
  matrices_[1] = host;
  EXPECT_DEATH(multiply(wanted()), "B at .* is not device memory");
}

TEST_F(EmulatedCublasLt, AFactorInDeviceMemoryIsFound) {
  alpha_ = memory_;
  EXPECT_DEATH(multiply(wanted()), "alpha is not a number in host memory");
}

TEST_F(EmulatedCublasLt, AMatrixThatIsLessAlignedThanPromisedIsFound) {
  matrices_[0] += 1;
  EXPECT_DEATH(multiply(wanted()), "A at .* is not aligned to 256 bytes");
}

TEST_F(EmulatedCublasLt, AMatrixThatReachesBeyondItsMemoryIsFound) {
  matrices_[3] = memory_ + (4 * kBytes - 512) / sizeof(float);
  EXPECT_DEATH(multiply(wanted()), "\\(D\\).* beyond the end");
}

TEST_F(EmulatedCublasLt, ALeadingDimensionBelowTheRowsIsFound) {
  LT(cublasLtMatrixLayoutCreate)(&layouts_[0], CUDA_R_32F, 16, 16, 15);
  EXPECT_DEATH(found(), "the leading dimension of A is 15, less than its 16 rows");
}

TEST_F(EmulatedCublasLt, SizesAndTypesThatDoNotFitAreFound) {
  const auto good = layouts_[0];
  LT(cublasLtMatrixLayoutCreate)(&layouts_[0], CUDA_R_32F, 16, 17, 16);
  EXPECT_DEATH(found(), "op\\(A\\) and op\\(B\\) do not fit together");
  LT(cublasLtMatrixLayoutCreate)(&layouts_[0], CUDA_R_16F, 16, 16, 16);
  EXPECT_DEATH(found(), "the matrices have several types");
  layouts_[0] = good;
  LT(cublasLtMatmulDescCreate)(&desc_, CUBLAS_COMPUTE_64F, CUDA_R_64F);
  EXPECT_DEATH(found(), "no product of these types with this compute type");
}

TEST_F(EmulatedCublasLt, AnAlgorithmOfAnotherProblemIsFound) {
  const auto result = found();
  const cublasOperation_t transposed = CUBLAS_OP_T;
  LT(cublasLtMatmulDescSetAttribute)(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
  EXPECT_DEATH(
      LT(cublasLtMatmul)(handle_, desc_, &one_, matrices_[0], layouts_[0], matrices_[1], layouts_[1], &zero_,
                         matrices_[2], layouts_[2], matrices_[3], layouts_[3], &result.algo, workspace_, 8192, nullptr),
      "found for another problem");
}

TEST_F(EmulatedCublasLt, ADescriptorThatWasDestroyedIsFound) {
  LT(cublasLtMatrixLayoutDestroy)(layouts_[2]);
  EXPECT_DEATH(found(), "destroyed or never made");
}

TEST_F(EmulatedCublasLt, MemoryThatIsFreedBeforeTheProductRanIsFound) {
  restart({.order = emulated_cuda::Order::kLastMoment});
  void* const all = memory(0).acquire(4 * kBytes);
  memory_ = static_cast<float*>(all);
  for (std::size_t i = 0; i < 4; ++i) matrices_[i] = memory_ + i * kBytes / sizeof(float);
  workspace_ = all_workspace_ = memory(0).acquire(1 << 20);
  LT(cublasLtCreate)(&handle_);
  const auto result = found();
  EXPECT_DEATH(
      {
        LT(cublasLtMatmul)
        (handle_, desc_, &one_, matrices_[0], layouts_[0], matrices_[1], layouts_[1], &zero_, matrices_[2], layouts_[2],
         matrices_[3], layouts_[3], &result.algo, workspace_, 8192, nullptr);
        memory(0).release(workspace_, 1 << 20);
      },
      "takes memory at .* away that a queued cublasLtMatmul has not used yet");
}

#if __has_include(<cudnn.h>)
#define DNN(name) function_of<decltype(name)>("libcudnn.so.9", #name)

/// A convolution of one picture of 4 by 4 by a filter of 3 by 3.
class EmulatedCudnn : public EmulatedCuda {
 protected:
  void SetUp() override {
    EmulatedCuda::SetUp();
    memory_ = static_cast<float*>(memory(0).acquire(kBytes));
    device(0).fill(memory_, 0, kBytes, {});
    DNN(cudnnCreate)(&handle_);
    for (auto* tensor : {&x_, &y_}) DNN(cudnnCreateTensorDescriptor)(tensor);
    DNN(cudnnCreateFilterDescriptor)(&w_);
    DNN(cudnnCreateConvolutionDescriptor)(&conv_);
    describe(x_, {1, 1, 4, 4});
    describe(y_, {1, 1, 2, 2});
    const int filter[4] = {1, 1, 3, 3}, zeros[2] = {0, 0}, ones[2] = {1, 1};
    DNN(cudnnSetFilterNdDescriptor)(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, filter);
    DNN(cudnnSetConvolutionNdDescriptor)(conv_, 2, zeros, ones, ones, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  }
  void TearDown() override {
    device(0).synchronize();
    memory(0).release(memory_, kBytes);
    DNN(cudnnDestroy)(handle_);
    EmulatedCuda::TearDown();
  }
  static void describe(cudnnTensorDescriptor_t tensor, const std::array<int, 4>& sizes) {
    const int strides[4] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    DNN(cudnnSetTensorNdDescriptor)(tensor, CUDNN_DATA_FLOAT, 4, sizes.data(), strides);
  }
  void convolve(const void* w, std::size_t workspace_bytes) {
    const float one = 1, zero = 0;
    DNN(cudnnConvolutionForward)
    (handle_, &one, x_, memory_, w_, w, conv_, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, memory_ + 1024,
     workspace_bytes, &zero, y_, memory_ + 128);
    device(0).synchronize();
  }

  static constexpr std::size_t kBytes = 16384, kWanted = 3072;
  float* memory_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
};

TEST_F(EmulatedCudnn, ConvolvesWhereAllIsRight) {
  convolve(memory_ + 64, kWanted);
  EXPECT_EQ(fetch(0, memory_ + 128, 4)[0], 0);
}
TEST_F(EmulatedCudnn, AWorkspaceThatIsTooSmallIsFound) {
  EXPECT_DEATH(convolve(memory_ + 64, 1024), "the workspace has 1024 bytes, and the algorithm wants 3072");
}
TEST_F(EmulatedCudnn, AFilterInMemoryOfTheHostIsFound) {
  const float host[9] = {};
  EXPECT_DEATH(convolve(host, kWanted), "w at .* is not device memory");
}
TEST_F(EmulatedCudnn, ASizeThatTheConvolutionDoesNotGiveIsFound) {
  describe(y_, {1, 1, 2, 3});
  EXPECT_DEATH(convolve(memory_ + 64, kWanted), "y has a size that the convolution does not give");
}
TEST_F(EmulatedCudnn, ADescriptorThatWasNeverSetIsFound) {
  DNN(cudnnCreateTensorDescriptor)(&x_);
  EXPECT_DEATH(convolve(memory_ + 64, kWanted), "a descriptor was never set");
}
TEST_F(EmulatedCudnn, AMeasurementInACaptureIsFound) {
  const StreamRef stream = device(0).create_stream(0);
  DNN(cudnnSetStream)(handle_, reinterpret_cast<cudaStream_t>(stream.id));
  device(0).begin_capture(stream);
  int found = 0;
  cudnnConvolutionFwdAlgoPerf_t results[2];
  EXPECT_DEATH(DNN(cudnnFindConvolutionForwardAlgorithmEx)(handle_, x_, memory_, w_, memory_ + 64, conv_, y_,
                                                           memory_ + 128, 2, &found, results, memory_ + 1024, 4096),
               "was called while its stream is captured");
  device(0).destroy_graph(device(0).end_capture(stream));
  device(0).destroy_stream(stream);
}
#endif

}  // namespace
}  // namespace tenon::test
