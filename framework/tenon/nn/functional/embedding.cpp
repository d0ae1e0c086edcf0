// Functional embeddings.
#include <tenon/nn/functional/embedding.h>

#include <tenon/ops/indexing/embedding_bag.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

namespace tenon::nn::functional {
namespace {

void renormalise(Tensor weight, const Tensor& indices, double max_norm, double norm_type) {
  const NoGradGuard no_grad;
  tenon::embedding_renorm_(weight, indices, max_norm, norm_type);
}

std::int64_t padding_row(const std::optional<std::int64_t>& padding_idx, std::int64_t rows) {
  if (!padding_idx) return -1;
  if (*padding_idx >= rows || *padding_idx < -rows) throw Error("Padding_idx must be within num_embeddings");
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingFuncOptions& o) {
  const std::int64_t padding = padding_row(o.padding_idx(), weight.size(0));
  if (o.max_norm()) renormalise(weight, indices, *o.max_norm(), o.norm_type());
  return tenon::embedding(weight, indices, padding, o.scale_grad_by_freq());
}

Tensor embedding_bag(const Tensor& given, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  const Tensor& w = weight;
  Tensor input = given, offsets = o.offsets(), scale = o.per_sample_weights();
  if (scale.defined() && scale.sizes() != input.sizes()) {
    throw Error("embedding_bag: If per_sample_weights is not null, it must have the same shape as the input");
  }
  const bool is_sum = o.mode().is<enumtype::kSum>();
  if (scale.defined() && !is_sum) {
    throw Error("embedding_bag: per_sample_weights was not null. per_sample_weights is only supported for mode='kSum'");
  }
  if (input.dim() == 2) {
    if (offsets.defined()) {
      throw Error(
          "If input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length "
          "sequences.");
    }
    offsets = tenon::arange(0, input.numel(), input.size(1), TensorOptions(kInt64));
    input = input.reshape({-1});
    if (scale.defined()) scale = scale.reshape({-1});
  } else if (input.dim() == 1) {
    if (!offsets.defined()) throw Error("offsets has to be a 1D Tensor but got null");
    if (offsets.dim() != 1) throw Error("offsets has to be a 1D Tensor");
  } else {
    throw Error(fmt::format("input has to be 1D or 2D Tensor, but got Tensor of dimension {}", input.dim()));
  }
  if (o.max_norm()) renormalise(w, input, *o.max_norm(), o.norm_type());
  const std::int64_t padding = padding_row(o.padding_idx(), w.size(0));

  const std::int64_t mode = is_sum ? 0 : o.mode().is<enumtype::kMean>() ? 1 : 2;
  return std::get<0>(tenon::embedding_bag(w, input, offsets, o.scale_grad_by_freq(), mode, o.sparse(), scale,
                                          o.include_last_offset(),
                                          padding < 0 ? std::nullopt : std::optional<std::int64_t>(padding)));
}

Tensor one_hot(const Tensor& indices, std::int64_t num_classes) { return tenon::one_hot(indices, num_classes); }

}  // namespace tenon::nn::functional
