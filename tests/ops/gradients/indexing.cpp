// Rows of the gradient table: reading and writing by index, mask and table.
#include <tenon/tensor/shape/indexing.h>

#include "gradient_case.h"

namespace tenon::test {
namespace {

using namespace indexing;
using List = std::vector<Tensor>;

Tensor no_indices() { return zeros({0}, kInt64); }

/// The same function, of an index that names nothing.
GradientCase indexed(std::string name, std::function<Tensor(const Tensor&)> function,
                     std::function<Tensor(const Tensor&)> of_nothing) {
  return of_matrix(std::move(name), std::move(function)).empty({{0, 4}}, [of_nothing](const List& x) {
    return of_nothing(x[0]);
  });
}

}  // namespace

// Long: a list, one gradient an entry.
std::vector<GradientCase> indexing_gradients() {
  const Tensor columns = tensor({{0, 0}, {1, 2}, {3, 3}});
  const Tensor mask = tensor({true, false, true, false});
  return {
      indexed(
          "index",
          [](const Tensor& x) {
            return x.index({tensor({2, 0, 2}), tensor({1, 1, 3})});
          },
          [](const Tensor& x) {
            return x.index({no_indices(), no_indices()});
          }),
      indexed(
          "index and slice",
          [](const Tensor& x) {
            return x.index({Slice(1, None), tensor({0, 0})});
          },
          [](const Tensor& x) {
            return x.index({Slice(1, None), tensor({0, 0})});
          }),
      indexed(
          "mask of rows",
          [](const Tensor& x) {
            return x.index({tensor({true, false, true})});
          },
          [](const Tensor& x) { return x.index({zeros({0}, kBool)}); }),
      of_matrix("index_select",
                [](const Tensor& x) {
                  return x.index_select(1, tensor({1, 1, 0}).to(x.device()));
                }),
      indexed(
          "gather", [columns](const Tensor& x) { return x.gather(1, columns.to(x.device())); },
          [](const Tensor& x) {
            return x.gather(1, zeros({0, 2}, kInt64));
          }),
      indexed(
          "take",
          [](const Tensor& x) {
            return x.take(tensor({5, 0, 5}));
          },
          [](const Tensor& x) { return x.take(no_indices()); }),
      indexed(
          "scatter_add",
          [columns](const Tensor& x) { return x.scatter_add(1, columns.to(x.device()), x.narrow(1, 0, 2) * 2); },
          [](const Tensor& x) {
            return x.scatter_add(1, zeros({0, 2}, kInt64), x.narrow(1, 0, 2) * 2);
          }),
      indexed(
          "scatter",
          [](const Tensor& x) {
            return (x * 1).scatter(1, tensor({{0}, {1}, {3}}).to(x.device()), x.narrow(1, 2, 1) * 2);
          },
          [](const Tensor& x) {
            return (x * 1).scatter(1, zeros({0, 1}, kInt64), x.narrow(1, 2, 1) * 2);
          }),
      indexed(
          "index_add",
          [](const Tensor& x) {
            return x.index_add(0, tensor({1, 1}).to(x.device()), x.narrow(0, 0, 2));
          },
          [](const Tensor& x) { return x.index_add(0, no_indices(), x); }),
      indexed(
          "index_put",
          [](const Tensor& x) {
            return (x * 1).index_put(std::vector<std::optional<Tensor>>{tensor({0, 1})}, x.narrow(0, 1, 2) * 3);
          },
          [](const Tensor& x) { return (x * 1).index_put(std::vector<std::optional<Tensor>>{no_indices()}, x * 3); }),
      indexed(
          "index_put accumulating",
          [](const Tensor& x) {
            return (x * 1).index_put(std::vector<std::optional<Tensor>>{tensor({0, 0})}, x.narrow(0, 1, 2) * 3, true);
          },
          [](const Tensor& x) {
            return (x * 1).index_put(std::vector<std::optional<Tensor>>{no_indices()}, x * 3, true);
          }),
      of_matrix("masked_fill", [mask](const Tensor& x) { return x.masked_fill(mask.to(x.device()), 2); }),
      of_matrix("masked_fill_ in place",
                [mask](const Tensor& x) {
                  const Tensor y = x * 2;
                  y.masked_fill_(mask.to(x.device()), 2);
                  return y;
                }),
      of_matrix("masked_select", [mask](const Tensor& x) { return x.masked_select(mask); }),
      of_tensors("embedding",
                 [](const List& x) {
                   return embedding(x[0], tensor({{1, 0}, {2, 1}}).to(x[0].device()));
                 },
                 {{{3, 2}}})
          .empty({{3, 2}},
                 [](const List& x) {
                   return embedding(x[0], zeros({0, 2}, kInt64));
                 }),
      // The row of the padding has no gradient by definition, so none of these indices is it.
      of_tensors("embedding with padding",
                 [](const List& x) {
                   return embedding(x[0], tensor({{0, 0}, {2, 0}}).to(x[0].device()), 1);
                 },
                 {{{3, 2}}})
          .empty({{3, 2}},
                 [](const List& x) {
                   return embedding(x[0], zeros({0, 2}, kInt64), 1);
                 }),
  };
}

}  // namespace tenon::test
