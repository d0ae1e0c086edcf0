// What a tensor says of itself, how it prints, brackets with slices, and autograd asked directly.
#include "../table.h"

#include <sstream>

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

using Int = std::int64_t;
using torch::indexing::Slice;
using torch::indexing::TensorIndex;

std::string one_word(std::string text) {
  for (auto& c : text) {
    if (c == ' ') c = '_';
    if (c == '\n') c = '|';
  }
  return text;
}

void facts() {
  add("facts", "x", [](Tensor x) {
    std::string text;
    const auto say = [&](const char* name, auto value) { text += std::string(name) + "=" + std::to_string(value) + ","; };
    say("dim", x.dim());
    say("numel", x.numel());
    say("element_size", x.element_size());
    say("offset", x.storage_offset());
    say("contiguous", x.is_contiguous());
    say("channels_last", x.is_contiguous(torch::MemoryFormat::ChannelsLast));
    say("channels_last_3d", x.is_contiguous(torch::MemoryFormat::ChannelsLast3d));
    say("dense", x.is_non_overlapping_and_dense());
    say("format", static_cast<int>(x.suggest_memory_format()));
    say("leaf", x.is_leaf());
    say("inference", x.is_inference());
    say("signed", x.is_signed());
    say("floating", x.is_floating_point());
    say("nbytes", x.nbytes());
    return text;
  });
  add("facts.node", "x y", [](Tensor x, Tensor y) {
    const auto z = x * y + x;
    return std::string(z.grad_fn() ? z.grad_fn()->name() : "none") + "," + std::to_string(z.output_nr()) + "," + std::to_string(z.is_leaf());
  });
  add("print", "x", [](Tensor x) {
    std::ostringstream out;
    out << x.detach();
    return one_word(out.str());
  });
  add("Tensor.resize_as_", "plain y", [](Tensor x, Tensor y) { return Tensor(x.resize_as_(y).fill_(1)); });
  add("Tensor.set_data", "x y", [](Tensor x, Tensor y) {
    auto z = x.detach().clone();
    z.set_data(y.detach());
    return z;
  });
  add("empty_like", "x opt(dtype)", [](Tensor x, OptionalDtype dtype) {
    return (dtype ? torch::empty_like(x, *dtype) : torch::empty_like(x)).zero_();
  });
  add("rand_like", "x", [](Tensor x) { return torch::rand_like(x).mul_(0); });
  add("randn_like", "x", [](Tensor x) { return torch::randn_like(x).detach().clone().zero_(); });
  add("randperm", "int(0..5)", [](Int n) { return std::get<0>(torch::randperm(n).sort()); });
  add("empty_strided", "sizes2 strides2", [](Ints sizes, Ints strides) { return torch::empty_strided(sizes, strides).zero_(); });
  add("Tensor.to.last", "x4 dtype", [](Tensor x, Dtype dtype) {
    return x.to(torch::TensorOptions().dtype(dtype), false, true, torch::MemoryFormat::ChannelsLast);
  });
  add("Tensor.clone.format", "x4 int(0..2)", [](Tensor x, Int how) {
    return x.clone(how == 0 ? torch::MemoryFormat::Contiguous : how == 1 ? torch::MemoryFormat::Preserve : torch::MemoryFormat::ChannelsLast);
  });
}

TensorIndex index_of(Int kind, Int at, Int end, Int step) {
  switch (kind) {
    case 0: return TensorIndex(at);
    case 1: return TensorIndex(Slice());
    case 2: return TensorIndex(Slice(at, end, step));
    case 3: return TensorIndex("...");
    case 4: return TensorIndex(torch::indexing::None);
    case 5: return TensorIndex(at % 2 == 0);
    case 6: return TensorIndex(torch::tensor({at, end}));
    default: return TensorIndex(Slice(torch::indexing::None, end, step));
  }
}

void brackets() {
  add("Tensor.index", "x int(0..7) int(-3..3) int(-2..4) int(1..2) int(0..7) int(-2..2) int(-2..4) int(1..3)",
      [](Tensor x, Int a, Int b, Int c, Int d, Int e, Int f, Int g, Int h) {
        return x.index({index_of(a, b, c, d), index_of(e, f, g, h)});
      });
  add("Tensor.index.one", "x int(0..7) int(-3..3) int(-2..4) int(1..2)",
      [](Tensor x, Int a, Int b, Int c, Int d) { return x.index({index_of(a, b, c, d)}); });
  add("Tensor.index_put_.brackets", "x int(0..7) int(-3..3) int(-2..4) int(1..2) int(0..7) int(-2..2) int(-2..4) int(1..3) s",
      [](Tensor x, Int a, Int b, Int c, Int d, Int e, Int f, Int g, Int h, Scalar s) {
        return Tensor(x.index_put_({index_of(a, b, c, d), index_of(e, f, g, h)}, s));
      });
  add("Tensor.index_put_.tensor", "x int(0..7) int(-3..3) int(-2..4) int(1..2) n0",
      [](Tensor x, Int a, Int b, Int c, Int d, Tensor v) { return Tensor(x.index_put_({index_of(a, b, c, d)}, v)); });
  add("operator[]", "x int(-3..3)", [](Tensor x, Int at) { return x[at]; });
  add("operator[].Tensor", "x index0", [](Tensor x, Tensor at) { return x[at]; });
  add("operator-.unary", "x", [](Tensor x) { return -x; });
  add("operator~", "x", [](Tensor x) { return ~x; });
  add("operator!", "x", [](Tensor x) { return x.logical_not(); });
}

void recorded() {
  add("backward.twice", "x y", [](Tensor x, Tensor y) {
    auto a = x.detach().clone();
    if (!a.is_floating_point()) return Tensors{};
    a.requires_grad_(true);
    const torch::AutoGradMode with_gradients(true);
    const auto loss = (a * y.detach()).sum() + a.exp().mean();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    return Tensors{a.grad()};
  });
  add("retain_grad", "x y", [](Tensor x, Tensor y) {
    auto a = x.detach().clone();
    if (!a.is_floating_point()) return Tensors{};
    a.requires_grad_(true);
    const torch::AutoGradMode with_gradients(true);
    auto b = a * y.detach();
    b.retain_grad();
    b.sin().sum().backward();
    return Tensors{a.grad(), b.grad()};
  });
  add("hook", "x", [](Tensor x) {
    auto a = x.detach().clone();
    if (!a.is_floating_point()) return Tensors{};
    a.requires_grad_(true);
    const torch::AutoGradMode with_gradients(true);
    auto b = a * 3;
    b.register_hook([](Tensor g) { return g * 2; });
    b.square().sum().backward();
    return Tensors{a.grad()};
  });
  add("written_view", "x dim int(-2..2) s", [](Tensor x, Int dim, Int at, Scalar s) {
    auto base = x * 2;
    auto view = base.select(dim, at);
    view.mul_(s);
    return Tensors{base, view};
  });
  add("written_base", "x dim int(-2..2) s", [](Tensor x, Int dim, Int at, Scalar s) {
    auto base = x * 2;
    auto view = base.select(dim, at);
    base.mul_(s);
    return Tensors{base, view * view};
  });
}

}  // namespace

void add_facts() {
  facts();
  brackets();
  recorded();
}

}  // namespace differential
// clang-format on
