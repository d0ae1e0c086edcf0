// Einstein's summation: each operand is brought to one order of dims, and two at a time become a batched matrix
// product.
#include <tenon/ops/linear.h>
#include <tenon/ops/products.h>
#include <tenon/ops/support.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace tenon {

using namespace ops;

namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = kLetters;  ///< in place of a letter's number

/// "A" to "Z" are 0 to 25, "a" to "z" 26 to 51: the order of an implicit result.
int number_of(char letter) {
  return std::isupper(static_cast<unsigned char>(letter)) ? letter - 'A' : letter - 'a' + 26;
}
char letter_of(int number) { return static_cast<char>(number < 26 ? 'A' + number : 'a' + number - 26); }

/// Letters and "..." of one operand or of the result.
std::vector<int> subscripts(std::string_view text, const std::string& where) {
  std::vector<int> result;
  bool has_ellipsis = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (has_ellipsis)
        throw Error(fmt::format("einsum(): found '.' for {} for which an ellipsis was already found", where));
      if (text.substr(i, 3) != "...")
        throw Error(fmt::format("einsum(): found '.' for {} that is not part of any ellipsis", where));
      has_ellipsis = true;
      result.push_back(kEllipsis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      result.push_back(number_of(text[i]));
    } else {
      throw Error(
          fmt::format("einsum(): invalid subscript given at index {} of {}: '{}', subscripts must be in [a-zA-Z]", i,
                      where, text[i]));
    }
  }
  return result;
}

std::vector<std::vector<int>> operand_subscripts(std::string_view left, std::size_t count) {
  std::vector<std::vector<int>> result;
  for (std::size_t start = 0; start <= left.size();) {
    const std::size_t end = std::min(left.find(',', start), left.size());
    result.push_back(subscripts(left.substr(start, end - start), fmt::format("operand {}", result.size())));
    start = end + 1;
  }
  if (result.size() > count) throw Error("einsum(): more operands specified in equation than were provided");
  if (result.size() < count) throw Error("einsum(): fewer operands were specified in the equation than were provided");
  return result;
}

/// Which dims there are, and in which order: the result's first, then those that are summed over.
struct Arrangement {
  std::array<int, kLetters> at;  ///< of each letter; -1 where it does not occur
  std::array<std::int64_t, kLetters> size;
  int ellipsis_at = 0, ellipsis_dims = 0;
  int result_dims = 0, dims = 0;
};

void measure(Arrangement& layout, const std::vector<std::vector<int>>& inputs, TensorList operands) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto named = static_cast<std::int64_t>(inputs[i].size());
    bool has_ellipsis = false;
    for (const int label : inputs[i]) has_ellipsis = has_ellipsis || label == kEllipsis;
    const std::int64_t rest = operands[i].dim() - named + (has_ellipsis ? 1 : 0);
    if (rest < 0 || (!has_ellipsis && rest != 0)) {
      throw Error(
          fmt::format("einsum(): the number of subscripts in the equation ({}) {} the number of dimensions ({}) for "
                      "operand {}{}",
                      named - (has_ellipsis ? 1 : 0), rest < 0 && has_ellipsis ? "is more than" : "does not match",
                      operands[i].dim(), i, has_ellipsis ? "" : " and no ellipsis was given"));
    }
    if (has_ellipsis) layout.ellipsis_dims = std::max(layout.ellipsis_dims, static_cast<int>(rest));
    std::int64_t dim = 0;
    for (const int label : inputs[i]) {
      if (label == kEllipsis) {
        dim += rest;
        continue;
      }
      const std::int64_t size = operands[i].size(dim++);
      std::int64_t& known = layout.size[static_cast<std::size_t>(label)];
      if (known > 1 && size != 1 && known != size) {
        throw Error(
            fmt::format("einsum(): subscript {} has size {} for operand {} which does not broadcast with previously "
                        "seen size {}",
                        letter_of(label), size, i, known));
      }
      if (known < 0 || known == 1) known = size;
    }
  }
}

void order(Arrangement& layout, const std::vector<std::vector<int>>& inputs, std::optional<std::string_view> right) {
  std::array<int, kLetters> seen{};
  bool has_ellipsis = false;
  for (const std::vector<int>& labels : inputs) {
    for (const int label : labels) {
      if (label == kEllipsis) {
        has_ellipsis = true;
      } else {
        ++seen[static_cast<std::size_t>(label)];
      }
    }
  }
  bool ellipsis_in_result = false;
  const auto place = [&](int label) {
    if (label == kEllipsis) {
      layout.ellipsis_at = layout.dims;
      layout.dims += layout.ellipsis_dims;
      ellipsis_in_result = true;
    } else {
      layout.at[static_cast<std::size_t>(label)] = layout.dims++;
    }
  };
  if (right) {
    for (const int label : subscripts(*right, "the output")) {
      if (label != kEllipsis && layout.at[static_cast<std::size_t>(label)] >= 0) {
        throw Error(
            fmt::format("einsum(): output subscript {} appears more than once in the output", letter_of(label)));
      }
      if (label != kEllipsis && seen[static_cast<std::size_t>(label)] == 0) {
        throw Error(fmt::format("einsum(): output subscript {} does not appear in the equation for any input operand",
                                letter_of(label)));
      }
      place(label);
    }
  } else {
    if (has_ellipsis) place(kEllipsis);
    for (int label = 0; label < kLetters; ++label) {
      if (seen[static_cast<std::size_t>(label)] == 1) place(label);
    }
  }
  layout.result_dims = layout.dims;
  if (has_ellipsis && !ellipsis_in_result) place(kEllipsis);  // summed over, too
  for (int label = 0; label < kLetters; ++label) {
    if (seen[static_cast<std::size_t>(label)] > 0 && layout.at[static_cast<std::size_t>(label)] < 0) place(label);
  }
}

/// An operand with all dims of the layout; those that it lacks have size 1.
Tensor laid_out(Tensor operand, const std::vector<int>& labels, const Arrangement& layout) {
  std::vector<std::int64_t> target(static_cast<std::size_t>(layout.dims),
                                   -1);  // dim of operand for each of the layout's
  std::int64_t dim = 0;
  for (const int label : labels) {
    if (label == kEllipsis) {
      const std::int64_t own = operand.dim() - (static_cast<std::int64_t>(labels.size()) - 1);
      const std::int64_t rest = std::max<std::int64_t>(own, 0);
      for (std::int64_t i = 0; i < layout.ellipsis_dims - rest; ++i) operand = operand.unsqueeze(dim);
      for (int i = 0; i < layout.ellipsis_dims; ++i) target[static_cast<std::size_t>(layout.ellipsis_at + i)] = dim++;
      continue;
    }
    auto& place = target[static_cast<std::size_t>(layout.at[static_cast<std::size_t>(label)])];
    if (place < 0) {
      place = dim++;
      continue;
    }
    if (operand.size(place) != operand.size(dim)) {
      throw Error(fmt::format("einsum(): subscript {} is repeated for an operand but the sizes don't match, {} != {}",
                              letter_of(label), operand.size(dim), operand.size(place)));
    }
    operand = operand.diagonal(0, place, dim).movedim(-1, place);
  }
  for (std::int64_t& place : target) {
    if (place >= 0) continue;
    operand = operand.unsqueeze(-1);
    place = operand.dim() - 1;
  }
  return operand.permute(target);
}

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
  if (operands.empty()) throw Error("einsum(): must provide at least one operand");
  const std::size_t arrow = equation.find("->");
  const auto inputs = operand_subscripts(equation.substr(0, arrow), operands.size());
  Arrangement layout{};
  layout.at.fill(-1);
  layout.size.fill(-1);
  measure(layout, inputs, operands);
  order(layout, inputs,
        arrow == std::string_view::npos ? std::nullopt : std::optional<std::string_view>(equation.substr(arrow + 2)));
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
