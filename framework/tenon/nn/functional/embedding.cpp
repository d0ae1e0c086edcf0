// Functional embeddings.
#include <tenon/nn/functional/embedding.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <set>

namespace tenon::nn::functional {
namespace {

/// Scales the rows that `indices` name to at most max_norm, in place.
void renormalise(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  NoGradGuard no_grad;
  const Tensor flat = indices.contiguous().cpu().flatten().to(kInt64);
  const std::int64_t* values = flat.data_ptr<std::int64_t>();
  for (const std::int64_t row : std::set<std::int64_t>(values, values + flat.numel())) {
    const Tensor vector = weight.select(0, row);
    const double norm = vector.norm(norm_type).item<double>();
    if (norm > max_norm) vector.mul_(max_norm / (norm + 1e-7));
  }
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
  const bool is_sum = std::holds_alternative<enumtype::kSum>(o.mode());
  if (scale.defined() && !is_sum) {
    throw Error("embedding_bag: per_sample_weights was not null. per_sample_weights is only supported for mode='kSum'");
  }
  if (input.dim() == 2) {
    if (offsets.defined()) {
      throw Error("If input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length sequences.");
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

  // Which elements a bag holds is settled on the host; each bag is then one reduction.
  const Tensor starts = offsets.to(kInt64).cpu().contiguous(), host = input.to(kInt64).cpu().contiguous();
  const std::int64_t bags = starts.numel() - (o.include_last_offset() ? 1 : 0);
  const std::int64_t* start = starts.data_ptr<std::int64_t>();
  const std::int64_t* index = host.data_ptr<std::int64_t>();
  std::vector<Tensor> rows;
  for (std::int64_t bag = 0; bag < bags; ++bag) {
    const std::int64_t end = bag + 1 < starts.numel() ? start[bag + 1] : input.numel();
    std::vector<std::int64_t> members;
    for (std::int64_t i = start[bag]; i < end; ++i) {
      if (index[i] != padding) members.push_back(i);
    }
    if (members.empty()) {
      rows.push_back(tenon::zeros({w.size(1)}, w.options()));
      continue;
    }
    const Tensor which = tenon::tensor(members, TensorOptions(kInt64)).to(input.device());
    Tensor vectors = tenon::embedding(w, input.index_select(0, which), -1, o.scale_grad_by_freq());
    if (scale.defined()) vectors = vectors * scale.index_select(0, which).unsqueeze(1);
    if (is_sum) {
      rows.push_back(vectors.sum({0}));
    } else if (std::holds_alternative<enumtype::kMean>(o.mode())) {
      rows.push_back(vectors.mean({0}));
    } else {
      rows.push_back(std::get<0>(vectors.max(0)));
    }
  }
  return rows.empty() ? tenon::zeros({0, w.size(1)}, w.options()) : tenon::stack(rows, 0);
}

Tensor one_hot(const Tensor& indices, std::int64_t num_classes) {
  if (num_classes < 0) {
    if (indices.numel() == 0) throw Error("Can not infer total number of classes from empty tensor.");
    num_classes = indices.max().item<std::int64_t>() + 1;
  }
  std::vector<std::int64_t> sizes = indices.sizes().vec();
  sizes.push_back(num_classes);
  return tenon::zeros(sizes, indices.options()).scatter(-1, indices.unsqueeze(-1), 1);
}

}  // namespace tenon::nn::functional
