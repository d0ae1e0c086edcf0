// cuDNN: convolutions, by its call for each (its graphs want a compiler of their own for the same kernels). These are
// all the functions of it that are used. Without cudnn.h at build time there is none.
#pragma once

#if __has_include(<cudnn.h>)
#define TENON_WITH_CUDNN 1
#include <cudnn.h>
#else
#define TENON_WITH_CUDNN 0
#endif

#include <source_location>
#include <string_view>

struct cudnnContext;

namespace tenon::cuda {

/// Whether it can be opened and has all that is called; false in a build without cudnn.h.
bool cudnn_is_usable();
cudnnContext* create_cudnn();
void destroy_cudnn(cudnnContext* handle) noexcept;

#if TENON_WITH_CUDNN
struct Cudnn {
  bool usable = false;

  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;

  decltype(&::cudnnCreateTensorDescriptor) tensor_create = nullptr;
  decltype(&::cudnnDestroyTensorDescriptor) tensor_destroy = nullptr;
  decltype(&::cudnnSetTensorNdDescriptor) tensor_set = nullptr;
  decltype(&::cudnnCreateFilterDescriptor) filter_create = nullptr;
  decltype(&::cudnnDestroyFilterDescriptor) filter_destroy = nullptr;
  decltype(&::cudnnSetFilterNdDescriptor) filter_set = nullptr;
  decltype(&::cudnnCreateConvolutionDescriptor) convolution_create = nullptr;
  decltype(&::cudnnDestroyConvolutionDescriptor) convolution_destroy = nullptr;
  decltype(&::cudnnSetConvolutionNdDescriptor) convolution_set = nullptr;
  decltype(&::cudnnSetConvolutionGroupCount) set_groups = nullptr;
  decltype(&::cudnnSetConvolutionMathType) set_math = nullptr;
  decltype(&::cudnnCreateActivationDescriptor) activation_create = nullptr;
  decltype(&::cudnnDestroyActivationDescriptor) activation_destroy = nullptr;
  decltype(&::cudnnSetActivationDescriptor) activation_set = nullptr;

  decltype(&::cudnnGetConvolutionForwardAlgorithm_v7) forward_ask = nullptr;
  decltype(&::cudnnFindConvolutionForwardAlgorithmEx) forward_measure = nullptr;
  decltype(&::cudnnConvolutionForward) forward = nullptr;
  decltype(&::cudnnConvolutionBiasActivationForward) forward_fused = nullptr;
  decltype(&::cudnnGetConvolutionBackwardDataAlgorithm_v7) input_ask = nullptr;
  decltype(&::cudnnFindConvolutionBackwardDataAlgorithmEx) input_measure = nullptr;
  decltype(&::cudnnConvolutionBackwardData) input = nullptr;
  decltype(&::cudnnGetConvolutionBackwardFilterAlgorithm_v7) weight_ask = nullptr;
  decltype(&::cudnnFindConvolutionBackwardFilterAlgorithmEx) weight_measure = nullptr;
  decltype(&::cudnnConvolutionBackwardFilter) weight = nullptr;
  decltype(&::cudnnAddTensor) add = nullptr;

  void check(cudnnStatus_t status, std::string_view what,
             const std::source_location& where = std::source_location::current()) const;
};

/// Looked for once a process.
const Cudnn& cudnn();
#endif

}  // namespace tenon::cuda
