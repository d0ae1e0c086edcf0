// All places of a triangle, all pairs of elements: a mask's places.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/enumeration.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/broadcast.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

namespace tenon {

namespace {

Tensor places(std::int64_t row, std::int64_t column, const TensorOptions& options,
              Tensor (*triangle)(const Tensor&, std::int64_t), std::int64_t offset) {
  if (row < 0) throw Error(fmt::format("row must be non-negative, got{}", row));
  if (column < 0) throw Error(fmt::format("col must be non-negative, got{}", column));
  // The places are known without the values: where a device has none, the host finds them.
  const Device device = holds_data(device_state(options.device()).driver()) ? options.device() : Device(kCPU);
  const Tensor all = ones({row, column}, TensorOptions(kBool).device(device));
  return triangle(all, offset).nonzero().t().contiguous().to(options);
}

}  // namespace

Tensor tril_indices(std::int64_t row, std::int64_t column, std::int64_t offset, const TensorOptions& options) {
  TENON_SCOPE(tril_indices, row, column, offset, options)
  return places(
      row, column, options, [](const Tensor& x, std::int64_t diagonal) { return x.tril(diagonal); }, offset);
}
Tensor triu_indices(std::int64_t row, std::int64_t column, std::int64_t offset, const TensorOptions& options) {
  TENON_SCOPE(triu_indices, row, column, offset, options)
  return places(
      row, column, options, [](const Tensor& x, std::int64_t diagonal) { return x.triu(diagonal); }, offset);
}

Tensor cartesian_prod(TensorList tensors) {
  TENON_SCOPE(cartesian_prod, tensors)
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() != 1) throw Error("Expect a 1D vector, but got shape " + to_string(tensor.sizes()));
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (const Tensor& grid : meshgrid(tensors, "ij")) columns.push_back(grid.flatten());
  return stack(columns, 1);
}

Tensor combinations(const Tensor& self, std::int64_t r, bool with_replacement) {
  TENON_SCOPE(combinations, self, r, with_replacement)
  if (self.dim() != 1) throw Error("Expect a 1D vector, but got shape " + to_string(self.sizes()));
  if (r < 0) throw Error(fmt::format("Expect a non-negative number, but got {}", r));
  if (r == 0) return empty({0}, self.options());
  const Device device = ops::has_values(self) ? self.device() : Device(kCPU);
  const Tensor numbers = arange(self.numel(), TensorOptions(kLong).device(device));
  const std::vector<Tensor> grids = meshgrid(std::vector<Tensor>(static_cast<std::size_t>(r), numbers), "ij");
  Tensor ascending = ones_like(grids[0], TensorOptions(kBool));
  for (std::size_t i = 1; i < grids.size(); ++i) {
    ascending = ascending.logical_and(with_replacement ? grids[i - 1].le(grids[i]) : grids[i - 1].lt(grids[i]));
  }
  std::vector<Tensor> columns;
  for (const Tensor& grid : grids) {
    columns.push_back(self.index_select(0, grid.masked_select(ascending).to(self.device())));
  }
  return stack(columns, 1);
}

std::vector<Tensor> unravel_index(const Tensor& indices, IntArrayRef shape) {
  TENON_SCOPE(unravel_index, indices, shape)
  if (!is_integral(indices.scalar_type())) {
    throw TypeError(std::string("expected 'indices' to be integer dtype, but got ") + toString(indices.scalar_type()));
  }
  for (const std::int64_t size : shape) {
    if (size < 0) throw ValueError("'shape' cannot have negative values, but got " + to_string(shape));
    if (size == 0 && indices.numel() > 0) {
      throw ValueError("'shape' cannot have zero dimensions when 'indices' is non-empty, but got " + to_string(shape));
    }
  }
  std::vector<Tensor> coordinates(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    // Of no indices any size will do.
    const std::int64_t size = std::max<std::int64_t>(shape[i], 1);
    coordinates[i] = indices.to(kInt64).floor_divide(step).remainder(size);
    step *= size;
  }
  return coordinates;
}

}  // namespace tenon
