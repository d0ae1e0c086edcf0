// A libtorch program that uses tensors as arrays: NumPy's functions, elements by index, code by dtype, loops in parts.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <cstdlib>

namespace {

int failures = 0;
void expect(bool truth, const char* what) {
  if (truth) return;
  std::cerr << "not so: " << what << "\n";
  ++failures;
}

template <typename scalar_t>
void scale_rows(torch::TensorAccessor<scalar_t, 2> rows, const std::vector<double>& by) {
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t j = 0; j < rows.size(1); ++j) rows[i][j] *= static_cast<scalar_t>(by[static_cast<size_t>(i)]);
  }
}

/// An operator of the user's own, as extensions write them.
at::Tensor row_sums(const at::Tensor& input) {
  TORCH_CHECK(input.dim() == 2, "row_sums: expected 2 dims, got ", input.dim());
  at::Tensor result = at::empty({input.size(0)}, input.options());
  AT_DISPATCH_ALL_TYPES(input.scalar_type(), "row_sums", [&] {
    const auto in = input.accessor<scalar_t, 2>();
    const auto out = result.accessor<scalar_t, 1>();
    at::parallel_for(0, input.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        scalar_t sum = 0;
        for (int64_t j = 0; j < input.size(1); ++j) sum += in[i][j];
        out[i] = sum;
      }
    });
  });
  return result;
}

}  // namespace

int main() {
  torch::Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  scale_rows(x.accessor<float, 2>(), {1, 10});
  expect(x.equal(torch::tensor({{0.f, 1.f, 2.f}, {30.f, 40.f, 50.f}})), "rows are scaled in place");
  expect(row_sums(x).equal(x.sum(1)), "the user's own operator sums rows");
  expect(row_sums(x.to(torch::kLong)).equal(x.to(torch::kLong).sum(1)), "of integers too");
  expect(c10::isFloatingType(x.scalar_type()) && c10::elementSize(torch::kHalf) == 2, "dtypes answer questions");
  expect(c10::CppTypeToScalarType<int64_t>::value == at::kLong, "a C++ type has a dtype");

  expect(torch::einsum("ij,kj->ik", {x, x}).allclose(x.mm(x.t())), "einsum is a matrix product");
  expect(torch::movedim(x, {0, 1}, {1, 0}).equal(x.t()), "dims move");
  expect(torch::cdist(x, x).diagonal().equal(torch::zeros({2})), "a row is at no distance of itself");
  auto [values, inverse, counts] = at::_unique2(torch::tensor({3, 1, 3}), true, true, true);
  expect(values.index({inverse}).equal(torch::tensor({3, 1, 3})), "the inverse restores");
  expect(torch::searchsorted(torch::tensor({1, 3, 5}), 4).item<int64_t>() == 2, "4 comes third");
  auto [lowest, highest] = x.aminmax();
  expect(lowest.item<float>() == 0 && highest.item<float>() == 50, "both extremes at once");
  expect(x.quantile(0.5).item<float>() == 16, "the median is a quantile");
  expect(x.clip(1, 40).equal(x.clamp(1, 40)), "clip is clamp");
  expect((x * 1).masked_scatter_(x.gt(1), torch::ones({6})).max().item<float>() == 1, "masks take from a source");
  expect(torch::linalg::vector_norm(x).allclose(x.norm()), "norms agree");
  torch::Tensor out = torch::empty({0});
  at::mm_out(out, x, x.t());
  expect(out.equal(x.mm(x.t())), "results go where they are told to");
  expect(torch::margin_ranking_loss(x[0], x[1], torch::ones({3})).item<float>() > 0, "losses are functions");

  torch::Tensor leaf = torch::rand({3, 4}, torch::requires_grad());
  (torch::logcumsumexp(leaf, 1).sum() + torch::kron(leaf, leaf).sum() + leaf.renorm(2, 0, 1).sum()).backward();
  expect(leaf.grad().defined() && leaf.grad().isfinite().all().item<bool>(), "all of it has gradients");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
