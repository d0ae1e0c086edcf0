// Parameters as one vector and back.
#include <tenon/nn/convert_parameters.h>

#include <tenon/ops/ops.h>

namespace tenon::nn::utils {

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> pieces;
  for (const Tensor& parameter : parameters) {
    if (parameter.device() != parameters[0].device()) throw Error("Found two parameters on different devices");
    pieces.push_back(parameter.reshape({-1}));
  }
  return tenon::cat(pieces, 0);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  std::int64_t position = 0;
  for (const Tensor& parameter : parameters) {
    parameter.set_data(vector.narrow(0, position, parameter.numel()).view_as(parameter).data());
    position += parameter.numel();
  }
}

}  // namespace tenon::nn::utils
