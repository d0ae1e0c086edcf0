// Einstein's summation: each operand is brought to one order of dims, and two at a time become a batched matrix
// product. Declared in products.h.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/linalg/einsum_equation.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

/// The product of two operands of one layout, summed over the dims of `summed`, which keep size 1.
Tensor contract(Tensor a, Tensor b, const std::vector<bool>& summed) {
  std::vector<std::int64_t> batch, rows, columns, inner;
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    const bool in_a = a.size(i) != 1, in_b = b.size(i) != 1;
    if (summed[static_cast<std::size_t>(i)]) {
      if (in_a && in_b) {
        inner.push_back(i);
      } else if (in_a) {
        a = a.sum(i, true);
      } else if (in_b) {
        b = b.sum(i, true);
      }
    } else if (in_a && in_b) {
      batch.push_back(i);
    } else if (in_a) {
      rows.push_back(i);
    } else if (in_b) {
      columns.push_back(i);
    }
  }
  if (inner.empty()) return a.mul(b);
  const auto count = [](const Tensor& tensor, const std::vector<std::int64_t>& dims) {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims) product *= tensor.size(dim);
    return product;
  };
  const auto flat = [&](const Tensor& tensor, const std::vector<std::int64_t>& left,
                        const std::vector<std::int64_t>& right) {
    std::vector<std::int64_t> dims = batch;
    dims.insert(dims.end(), left.begin(), left.end());
    dims.insert(dims.end(), right.begin(), right.end());
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      if (std::find(dims.begin(), dims.end(), i) == dims.end()) dims.push_back(i);
    }
    return tensor.permute(dims).reshape({count(tensor, batch), count(tensor, left), count(tensor, right)});
  };
  Tensor product = bmm(flat(a, rows, inner), flat(b, inner, columns));
  // Back from (batch, rows, columns) to the layout.
  std::vector<std::int64_t> order = batch, sizes;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  for (const std::int64_t dim : order) sizes.push_back(a.size(dim) != 1 ? a.size(dim) : b.size(dim));
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (std::find(order.begin(), order.end(), i) == order.end()) {
      order.push_back(i);
      sizes.push_back(1);
    }
  }
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return product.reshape(sizes).permute(inverse);
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList operands, OptionalIntArrayRef path) {
  TENON_AUTOCAST(einsum, equation, operands, path)
  if (operands.empty()) throw Error("einsum(): must provide at least one operand");
  Subscripts inputs;
  const Arrangement layout = arrangement_of(equation, operands, inputs);
  std::vector<Tensor> open;
  for (std::size_t i = 0; i < operands.size(); ++i) open.push_back(laid_out(operands[i], inputs[i], layout));
  if (path && path->size() != 2 * (operands.size() - 1)) {
    throw Error(fmt::format("einsum(): expected contraction path given in path parameter to have size {} but got {}",
                            2 * (operands.size() - 1), path->size()));
  }
  std::size_t step = 0;
  const auto summed_now = [&] {  // dims that nothing but the pair in hand has
    std::vector<bool> summed(static_cast<std::size_t>(layout.dims), false);
    for (int dim = layout.result_dims; dim < layout.dims; ++dim) {
      bool elsewhere = false;
      for (const Tensor& other : open) elsewhere = elsewhere || other.size(dim) != 1;
      summed[static_cast<std::size_t>(dim)] = !elsewhere;
    }
    return summed;
  };
  while (open.size() > 1) {
    std::int64_t i = 0, j = 1;
    if (path) {
      i = std::min((*path)[step], (*path)[step + 1]);
      j = std::max((*path)[step], (*path)[step + 1]);
      step += 2;
    }
    if (i < 0 || i == j || j >= static_cast<std::int64_t>(open.size())) {
      throw Error(fmt::format("einsum(): invalid contraction path ({}, {} is not a pair of the {} operands left)", i, j,
                              open.size()));
    }
    const Tensor a = open[static_cast<std::size_t>(i)], b = open[static_cast<std::size_t>(j)];
    open.erase(open.begin() + j);
    open.erase(open.begin() + i);
    const Tensor result = contract(a, b, summed_now());
    if (path) {
      open.push_back(result);
    } else {
      open.insert(open.begin(), result);
    }
  }
  Tensor result = open[0];
  for (int dim = layout.dims - 1; dim >= layout.result_dims; --dim) {
    // A contraction has left size 1; of a single operand nothing was summed yet.
    result = operands.size() == 1 ? result.sum(dim) : result.squeeze(dim);
  }
  return result;
}

}  // namespace tenon
