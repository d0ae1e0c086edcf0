// Every header of libtorch that is here compiles beside all others, and brings what programs include it for.
#include "all_headers.h"

#include <cstdio>

int main() {
  torch::OrderedDict<std::string, int> names;
  names.insert("first", 1);
  const torch::ExpandingArray<2> both(3);
  const torch::optim::SGDOptions options(0.5);
  torch::nn::Sequential layers(torch::nn::Linear(2, 3), torch::nn::ReLU());
  const bool is_right = names["first"] == 1 && (*both)[1] == 3 && options.lr() == 0.5 &&
                        layers->forward(torch::ones({4, 2})).sizes() == torch::IntArrayRef({4, 3});
  std::puts(is_right ? "right" : "wrong");
  return is_right ? 0 : 1;
}
