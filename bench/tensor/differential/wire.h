// The text in which calls come in and outcomes go out. One line a call: the row's name, flags, and a word for each
// argument; one line an outcome. differential.py writes the former and reads the latter.
//
//   T:f32:2x3:c:n:17:g     tensor: dtype, sizes ("-" = no dimension), layout, values, seed, "g" = requires grad
//   A0  V0:t               argument 0 itself; a view of it (t transposed, s every second of dim 0, n narrowed, e
//   expanded) I3  R0.5  B1  Si3 Sr0.5 Sb1   integer, real, bool, Scalar L2,3  N  Qmean  Df32   integers, nothing, text,
//   dtype [T:…;T:…]              list of tensors
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace differential {

using torch::Tensor;

/// A line that asks for what cannot be: the generator's fault, not that of the function called.
struct BadCall : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The arguments of one call: words, and the tensors made of them, in order of their appearance.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {}

  std::size_t size() const { return words_.size(); }
  const std::string& word(std::size_t at) const;
  Tensor tensor(std::size_t at);
  std::vector<Tensor> tensors(std::size_t at);
  torch::Scalar scalar(std::size_t at) const;
  std::int64_t integer(std::size_t at) const;
  double real(std::size_t at) const;
  bool truth(std::size_t at) const;
  std::string text(std::size_t at) const;
  torch::ScalarType dtype(std::size_t at) const;
  std::vector<std::int64_t> integers(std::size_t at) const;
  bool none(std::size_t at) const { return word(at) == "N"; }

  /// Whether what is changed in place is a copy of the leaf, as autograd asks for.
  bool copies_leaves = false;
  /// The leaves that require gradients, and every tensor that the call was given.
  std::vector<Tensor> leaves, given;

 private:
  Tensor make(const std::string& word);
  std::vector<std::string> words_;
};

/// Forgets that operands were moved: the next call begins.
void begin_call();

/// What one call gave: tensors, numbers, texts.
struct Value {
  Tensor tensor;
  std::string text;  // where it is no tensor
};
using Values = std::vector<Value>;

/// dtype:sizes:strides:flags:bytes, the elements in their order; "undefined" for none.
std::string written(const Tensor& tensor);
std::string written(const Value& value);
/// Numbers between -1 and 1 that depend on sizes and seed alone; moved by a rounding where the operands of the call
/// are.
Tensor weights(const Tensor& like, std::uint64_t seed);

}  // namespace differential
