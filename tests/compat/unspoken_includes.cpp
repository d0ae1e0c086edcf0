// A program that includes torch/torch.h alone and uses what that header is known to bring along: parts of the standard
// library, torch::str, c10::irange and c10::Join.
#include <torch/torch.h>

namespace {

struct Twice : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return x + x; }
};

}  // namespace

int main() {
  const torch::Tensor ones = torch::ones({2, 3});
  assert(!std::isnan(ones.sum().item<float>()));
  float largest = 0;
  for (const auto i : c10::irange(ones.size(0)))
    for (const auto j : c10::irange(std::int64_t{1}, ones.size(1)))
      largest = std::max(largest, ones[i][j].item<float>());
  int rounds = 0;
  for (const auto i : c10::irange(3, 2)) rounds += static_cast<int>(i);
  const std::function<torch::Tensor(torch::Tensor)> twice = [module = std::make_shared<Twice>()](torch::Tensor x) {
    return module->forward(x);
  };
  const std::string name = torch::str("checkpoint-", 7, ".pt");
  const std::string list = c10::Join(", ", std::vector<int>{1, 2, 3});
  std::printf("%s %s %g\n", name.c_str(), list.c_str(), twice(ones).sum().item<double>());
  std::cout << std::get<0>(std::make_tuple(largest)) << std::endl;
  const bool kept = at::tensor(1).scalar_type() == at::kInt && at::tensor({1.5, 2.0}).scalar_type() == at::kDouble &&
                    at::tensor(std::vector<float>{1, 2}).scalar_type() == at::kFloat && at::tensor(1).dim() == 1 &&
                    at::tensor({1, 2}, at::kLong).scalar_type() == torch::kLong &&
                    torch::tensor(1).scalar_type() == at::kLong && torch::tensor({1.5}).scalar_type() == torch::kFloat;
  const bool right = kept && name == "checkpoint-7.pt" && list == "1, 2, 3" && largest == 1 && rounds == 0 &&
                     twice(ones).sum().item<double>() == 12;
  return right ? 0 : 1;
}
