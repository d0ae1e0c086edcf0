// Losses with their options, values and gradients, as PyTorch gives them.
#include <tenon/nn/functional/loss.h>

#include "pytorch_values/recorded.h"

#include <map>
#include <sstream>

namespace tenon::test {
namespace {

using nlohmann::json;
namespace F = nn::functional;

/// The recorded inputs by name.
std::map<std::string, Tensor> tensors_of(const json& file) {
  std::map<std::string, Tensor> tensors;
  for (const json& entry : file["tensors"]) {
    Tensor tensor = tenon::tensor(numbers_of(entry["values"]), TensorOptions(kFloat64))
                        .view(entry["sizes"].get<std::vector<std::int64_t>>());
    if (entry["is_whole"].get<bool>()) tensor = tensor.to(kInt64);
    tensors[entry["name"]] = tensor;
  }
  return tensors;
}

/// Options by their recorded names.
class Given {
 public:
  Given(const json& options, const std::map<std::string, Tensor>& tensors) : options_(options), tensors_(tensors) {}

  template <class Options>
  Options with_reduction(Options options) const {
    const auto name = options_["reduction"].get<std::string>();
    if (name == "none") options.reduction(kNone);
    if (name == "mean") options.reduction(kMean);
    if (name == "sum") options.reduction(kSum);
    if constexpr (requires { options.reduction(kBatchMean); }) {
      if (name == "batchmean") options.reduction(kBatchMean);
    }
    return options;
  }
  Tensor tensor(const char* key) const {
    return options_[key].is_null() ? Tensor() : tensors_.at(options_[key].get<std::string>());
  }
  double number(const char* key) const { return options_[key].get<double>(); }
  std::int64_t whole(const char* key) const { return options_[key].get<std::int64_t>(); }
  bool is(const char* key) const { return options_[key].get<bool>(); }
  bool has(const char* key) const { return options_.contains(key); }

 private:
  const json& options_;
  const std::map<std::string, Tensor>& tensors_;
};

Tensor of_two(const std::string& name, const std::vector<Tensor>& x, const Given& o) {
  if (name == "l1_loss") return F::l1_loss(x[0], x[1], o.with_reduction(F::L1LossFuncOptions()));
  if (name == "mse_loss") return F::mse_loss(x[0], x[1], o.with_reduction(F::MSELossFuncOptions()));
  if (name == "smooth_l1_loss")
    return F::smooth_l1_loss(x[0], x[1], o.with_reduction(F::SmoothL1LossFuncOptions()).beta(o.number("beta")));
  if (name == "huber_loss")
    return F::huber_loss(x[0], x[1], o.with_reduction(F::HuberLossFuncOptions()).delta(o.number("delta")));
  if (name == "kl_div")
    return F::kl_div(x[0], x[1], o.with_reduction(F::KLDivFuncOptions()).log_target(o.is("log_target")));
  if (name == "nll_loss")
    return F::nll_loss(
        x[0], x[1],
        o.with_reduction(F::NLLLossFuncOptions()).weight(o.tensor("weight")).ignore_index(o.whole("ignore_index")));
  if (name == "cross_entropy") {
    auto options = o.with_reduction(F::CrossEntropyFuncOptions()).weight(o.tensor("weight"));
    if (o.has("ignore_index")) options.ignore_index(o.whole("ignore_index"));
    return F::cross_entropy(x[0], x[1], options.label_smoothing(o.number("label_smoothing")));
  }
  if (name == "binary_cross_entropy")
    return F::binary_cross_entropy(x[0], x[1],
                                   o.with_reduction(F::BinaryCrossEntropyFuncOptions()).weight(o.tensor("weight")));
  if (name == "binary_cross_entropy_with_logits")
    return F::binary_cross_entropy_with_logits(x[0], x[1],
                                               o.with_reduction(F::BinaryCrossEntropyWithLogitsFuncOptions())
                                                   .weight(o.tensor("weight"))
                                                   .pos_weight(o.tensor("pos_weight")));
  if (name == "hinge_embedding_loss")
    return F::hinge_embedding_loss(x[0], x[1],
                                   o.with_reduction(F::HingeEmbeddingLossFuncOptions()).margin(o.number("margin")));
  if (name == "multi_margin_loss")
    return F::multi_margin_loss(x[0], x[1],
                                o.with_reduction(F::MultiMarginLossFuncOptions())
                                    .p(o.whole("p"))
                                    .margin(o.number("margin"))
                                    .weight(o.tensor("weight")));
  if (name == "multilabel_margin_loss")
    return F::multilabel_margin_loss(x[0], x[1], o.with_reduction(F::MultilabelMarginLossFuncOptions()));
  if (name == "multilabel_soft_margin_loss")
    return F::multilabel_soft_margin_loss(
        x[0], x[1], o.with_reduction(F::MultilabelSoftMarginLossFuncOptions()).weight(o.tensor("weight")));
  if (name == "soft_margin_loss")
    return F::soft_margin_loss(x[0], x[1], o.with_reduction(F::SoftMarginLossFuncOptions()));
  if (name == "poisson_nll_loss")
    return F::poisson_nll_loss(
        x[0], x[1], o.with_reduction(F::PoissonNLLLossFuncOptions()).log_input(o.is("log_input")).full(o.is("full")));
  throw Error("unknown loss " + name);
}

Tensor loss_of(const std::string& name, const std::vector<Tensor>& x, const Given& o) {
  if (x.size() == 2) return of_two(name, x, o);
  if (name == "cosine_embedding_loss")
    return F::cosine_embedding_loss(x[0], x[1], x[2],
                                    o.with_reduction(F::CosineEmbeddingLossFuncOptions()).margin(o.number("margin")));
  if (name == "margin_ranking_loss")
    return F::margin_ranking_loss(x[0], x[1], x[2],
                                  o.with_reduction(F::MarginRankingLossFuncOptions()).margin(o.number("margin")));
  if (name == "triplet_margin_loss")
    return F::triplet_margin_loss(x[0], x[1], x[2],
                                  o.with_reduction(F::TripletMarginLossFuncOptions())
                                      .margin(o.number("margin"))
                                      .p(o.number("p"))
                                      .swap(o.is("swap")));
  if (name == "gaussian_nll_loss")
    return F::gaussian_nll_loss(x[0], x[1], x[2], o.with_reduction(F::GaussianNLLLossFuncOptions()).full(o.is("full")));
  throw Error("unknown loss " + name);
}

TEST(PyTorchValues, OfLossesAndTheirGradients) {
  const json file = recorded("losses");
  const auto tensors = tensors_of(file);
  ASSERT_GT(file["cases"].size(), 150u);
  for (const json& recorded_case : file["cases"]) {
    const auto name = recorded_case["loss"].get<std::string>();
    SCOPED_TRACE(name + " of " + recorded_case["inputs"].get<std::string>() + " " + recorded_case["options"].dump());
    std::vector<Tensor> inputs;
    std::istringstream names(recorded_case["inputs"].get<std::string>());
    for (std::string input; names >> input;) {
      Tensor tensor = tensors.at(input).clone();
      if (!recorded_case["gradients"][inputs.size()].empty()) tensor.set_requires_grad(true);
      inputs.push_back(tensor);
    }
    const Tensor value = loss_of(name, inputs, Given(recorded_case["options"], tensors));
    expect_recorded(value, recorded_case["value"]);
    (value * tenon::arange(1., static_cast<double>(value.numel()) + 1, TensorOptions(kFloat64)).view(value.sizes()))
        .sum()
        .backward();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (recorded_case["gradients"][i].empty()) continue;
      SCOPED_TRACE("gradient of input " + std::to_string(i));
      ASSERT_TRUE(inputs[i].grad().defined());
      expect_recorded(inputs[i].grad(), recorded_case["gradients"][i]);
    }
  }
}

}  // namespace
}  // namespace tenon::test
