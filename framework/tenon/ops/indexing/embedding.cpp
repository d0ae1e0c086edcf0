// Embedding: rows by index; the gradient is summed into the rows that were used.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/embedding.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <set>

namespace tenon {

using namespace ops;

namespace {

Tensor gradient_of_rows(const Tensor& dy, const Tensor& rows, std::int64_t count,
                        const EmbeddingBackwardAttributes& attributes) {
  // Linear in dy: the gradient of the gradient looks rows up again. Padding rows and frequencies scale them.
  Recording recording = record<1>("EmbeddingDenseBackwardBackward0", {&dy}, [attributes](Backward& b) {
    const Tensor rows = b.saved(0);
    Tensor g = b.grad().index_select(0, rows);
    if (attributes.padding_index >= 0) g = g.masked_fill(rows.eq(attributes.padding_index).unsqueeze(1), 0);
    if (attributes.scale_by_frequency) {
      const Tensor counts =
          b.grad().new_zeros({b.grad().size(0)}).index_add(0, rows, b.grad().new_ones({rows.numel()}));
      g = g / counts.index_select(0, rows).unsqueeze(1);
    }
    b.set(0, g);
  });
  if (recording) recording.save(0, rows);
  const Tensor dense_dy = dense(dy);
  Tensor dweight = allocate_like(dy, {count, dy.size(1)}, dy.scalar_type());
  run(TENON_OP("embedding_backward"), state_of(dy), {view_of(dweight)}, {view_of(dense_dy), view_of(rows)},
      &attributes);
  recording.output(dweight);
  return dweight;
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, std::int64_t padding_idx, bool scale_grad_by_freq, bool) {
  TENON_SCOPE(embedding, weight, indices, padding_idx, scale_grad_by_freq)
  if (weight.dim() != 2) {
    throw Error(fmt::format("embedding: 'weight' must be 2-D, got size {}", to_string(weight.sizes())));
  }
  if (indices.scalar_type() != kInt64 && indices.scalar_type() != kInt32) {
    throw Error(
        fmt::format("embedding: expected indices of type Long or Int, but got {}", toString(indices.scalar_type())));
  }
  check_same_device("embedding", {&weight, &indices});
  const Tensor rows = indices.to(kInt64).reshape({-1}).contiguous();
  const EmbeddingBackwardAttributes attributes{.padding_index = padding_idx, .scale_by_frequency = scale_grad_by_freq};
  Recording recording = record<1>("EmbeddingBackward0", {&weight}, [attributes, count = weight.size(0)](Backward& b) {
    const Tensor& dy = b.grad();
    b.set(0, gradient_of_rows(dy.reshape({b.saved(0).size(0), dy.size(-1)}), b.saved(0), count, attributes));
  });
  Dims sizes = indices.impl().sizes();
  sizes.push_back(weight.size(1));
  Tensor y = allocate_like(weight, sizes, weight.scalar_type());
  const Tensor flat =
      alias_of(y, {rows.size(0), weight.size(1)}, contiguous_strides({rows.size(0), weight.size(1)}), 0);
  const DimAttributes dim{.dim = 0};
  run(TENON_OP("index_select"), state_of(weight), {view_of(flat)}, {view_of(weight), view_of(rows)}, &dim);
  if (recording) recording.save(0, rows);
  recording.output(y);
  return y;
}

Tensor& embedding_renorm_(Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  TENON_SCOPE(embedding_renorm_, weight, indices, max_norm, norm_type)
  autograd::check_inplace(weight);
  NoGradGuard no_grad;
  if (!has_values(weight)) return weight;  // no row has a norm
  // Row by row in double, as PyTorch does, so that the results are the same to the last bit.
  const Tensor flat = indices.contiguous().cpu().flatten().to(kInt64);
  const std::int64_t* values = flat.data_ptr<std::int64_t>();
  for (const std::int64_t row : std::set<std::int64_t>(values, values + flat.numel())) {
    const Tensor vector = weight.select(0, row);
    const double norm = vector.norm(norm_type).item<double>();
    if (norm > max_norm) vector.mul_(max_norm / (norm + 1e-7));
  }
  return weight;
}

}  // namespace tenon
