// The equation of einsum, read and held against the operands.
#include <tenon/ops/linalg/einsum_equation.h>
#include <tenon/tensor/shape/dims.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

namespace tenon::ops {

namespace {

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

}  // namespace

Arrangement arrangement_of(std::string_view equation, TensorList operands, Subscripts& inputs) {
  const std::size_t arrow = equation.find("->");
  inputs = operand_subscripts(equation.substr(0, arrow), operands.size());
  Arrangement layout{};
  layout.at.fill(-1);
  layout.size.fill(-1);
  measure(layout, inputs, operands);
  order(layout, inputs,
        arrow == std::string_view::npos ? std::nullopt : std::optional<std::string_view>(equation.substr(arrow + 2)));
  return layout;
}

Tensor laid_out(Tensor operand, const std::vector<int>& labels, const Arrangement& layout) {
  std::vector<std::int64_t> target(static_cast<std::size_t>(layout.dims),
                                   -1);  // dim of operand for each of the layout's
  const std::int64_t rest = operand.dim() - (static_cast<std::int64_t>(labels.size()) - 1);  // dims of an ellipsis
  std::int64_t dim = 0;
  for (const int label : labels) {
    if (label == kEllipsis) {
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

}  // namespace tenon::ops
