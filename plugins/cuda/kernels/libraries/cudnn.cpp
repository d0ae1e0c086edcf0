// cuDNN, looked up by name.
#include "kernels/libraries/cudnn.h"

#include "check.h"
#include "kernels/libraries/library.h"

namespace tenon::cuda {

#if TENON_WITH_CUDNN

namespace {

Cudnn look_up_cudnn() {
  static Library library({"libcudnn.so.9"}, "convolutions");
  Cudnn found;
  library.find(found.create, "cudnnCreate");
  library.find(found.destroy, "cudnnDestroy");
  library.find(found.set_stream, "cudnnSetStream");
  library.find(found.error_string, "cudnnGetErrorString");
  library.find(found.tensor_create, "cudnnCreateTensorDescriptor");
  library.find(found.tensor_destroy, "cudnnDestroyTensorDescriptor");
  library.find(found.tensor_set, "cudnnSetTensorNdDescriptor");
  library.find(found.filter_create, "cudnnCreateFilterDescriptor");
  library.find(found.filter_destroy, "cudnnDestroyFilterDescriptor");
  library.find(found.filter_set, "cudnnSetFilterNdDescriptor");
  library.find(found.convolution_create, "cudnnCreateConvolutionDescriptor");
  library.find(found.convolution_destroy, "cudnnDestroyConvolutionDescriptor");
  library.find(found.convolution_set, "cudnnSetConvolutionNdDescriptor");
  library.find(found.set_groups, "cudnnSetConvolutionGroupCount");
  library.find(found.set_math, "cudnnSetConvolutionMathType");
  library.find(found.activation_create, "cudnnCreateActivationDescriptor");
  library.find(found.activation_destroy, "cudnnDestroyActivationDescriptor");
  library.find(found.activation_set, "cudnnSetActivationDescriptor");
  library.find(found.forward_ask, "cudnnGetConvolutionForwardAlgorithm_v7");
  library.find(found.forward_measure, "cudnnFindConvolutionForwardAlgorithmEx");
  library.find(found.forward, "cudnnConvolutionForward");
  library.find(found.forward_fused, "cudnnConvolutionBiasActivationForward");
  library.find(found.input_ask, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  library.find(found.input_measure, "cudnnFindConvolutionBackwardDataAlgorithmEx");
  library.find(found.input, "cudnnConvolutionBackwardData");
  library.find(found.weight_ask, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  library.find(found.weight_measure, "cudnnFindConvolutionBackwardFilterAlgorithmEx");
  library.find(found.weight, "cudnnConvolutionBackwardFilter");
  library.find(found.add, "cudnnAddTensor");
  found.usable = library.usable();
  return found;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn found = look_up_cudnn();
  return found;
}

void Cudnn::check(cudnnStatus_t status, std::string_view what, const std::source_location& where) const {
  if (status != CUDNN_STATUS_SUCCESS) fail(what, "cuDNN", error_string(status), where);
}

bool cudnn_is_usable() { return cudnn().usable; }
cudnnContext* create_cudnn() {
  cudnnHandle_t handle = nullptr;
  cudnn().check(cudnn().create(&handle), "cudnnCreate");
  return handle;
}
void destroy_cudnn(cudnnContext* handle) noexcept { cudnn().destroy(handle); }

#else

bool cudnn_is_usable() { return false; }
cudnnContext* create_cudnn() { throw Error("cuda: this build has no cuDNN"); }
void destroy_cudnn(cudnnContext*) noexcept {}

#endif

}  // namespace tenon::cuda
