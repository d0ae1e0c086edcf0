// A program with a loop of its own: dispatch over dtypes, checks, numbers, and errors by their kinds.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace {

double sum_of(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.is_contiguous(), "sum_of: expected a contiguous tensor, got strides ", x.strides());
  return AT_DISPATCH_ALL_TYPES_AND(at::kBFloat16, x.scalar_type(), "sum_of", [&] {
    const scalar_t* data = x.data_ptr<scalar_t>();
    const auto sum_of_part = [&](std::int64_t begin, std::int64_t end, double sum) {
      for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(data[i]);
      return sum;
    };
    return at::parallel_reduce(0, x.numel(), 1, 0.0, sum_of_part, std::plus<double>());
  });
}

template <class E, class Call>
bool throws(Call call, const std::string& text) {
  try {
    call();
  } catch (const E& error) {
    return std::string(error.what_without_backtrace()).find(text) != std::string::npos && error.msg() == error.what();
  }
  return false;
}

}  // namespace

int main() {
  bool right = sum_of(torch::ones({3, 4}, torch::kInt)) == 12 && sum_of(torch::ones({5}, torch::kBFloat16)) == 5;
  const int three =
      AT_DISPATCH_FLOATING_TYPES(torch::kDouble, "bytes", [] { return static_cast<int>(sizeof(scalar_t)) - 5; });
  right = right && three == 3;
  right = right && throws<c10::ValueError>([] { sum_of(torch::ones({3, 4}).t()); }, "got strides [1, 4]");
  right = right &&
          throws<c10::Error>([] { sum_of(torch::ones({2}, torch::kBool)); }, "\"sum_of\" not implemented for 'Bool'");
  right = right && throws<c10::IndexError>([] { TORCH_CHECK_INDEX(1 == 2, "no"); }, "no");
  right = right &&
          throws<c10::NotImplementedError>([] { TORCH_CHECK_NOT_IMPLEMENTED(1 == 2); }, "Expected 1 == 2 to be true");
  right = right && throws<c10::Error>([] { at::Scalar(300).to<std::uint8_t>(); }, "type uint8_t without overflow");
  right = right && c10::CppTypeToScalarType<float>::value == at::kFloat && c10::elementSize(at::kLong) == 8 &&
          c10::isIntegralType(at::kBool, true) && !c10::isIntegralType(at::kBool, false) &&
          c10::promoteTypes(at::kInt, at::kHalf) == at::kHalf;
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  const std::shared_ptr<torch::autograd::Node> node = (x * 2).grad_fn();
  right = right && node && node->name().find("Mul") != std::string::npos;
  std::ostringstream printed;
  printed << "torch " << TORCH_VERSION_MAJOR << "." << TORCH_VERSION_MINOR;
  {
    using namespace torch;
    printed << " " << std::vector<std::int64_t>{2, 3};
  }
  std::cout << printed.str() << std::endl;
  return right && printed.str() == "torch 1.13 [2, 3]" ? 0 : 1;
}
