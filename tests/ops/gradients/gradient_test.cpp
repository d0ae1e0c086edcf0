// Every differentiable operator against differences, on contiguous, strided, broadcast and empty inputs; and the proof
// that none is left out.
#include "gradient_case.h"

#include <tenon/core/error.h>
#include <tenon/kernel/pointwise.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <unordered_set>

namespace tenon::test {
namespace {

constexpr std::uint64_t kSeed = 21;

struct Family {
  const char* name;
  std::vector<GradientCase> (*rows)();
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

constexpr Family kFamilies[] = {
    {"unary", unary_gradients},         {"binary", binary_gradients},     {"reduction", reduction_gradients},
    {"view", view_gradients},           {"indexing", indexing_gradients}, {"product", product_gradients},
    {"window", window_gradients},       {"loss", loss_gradients},         {"normalization", normalization_gradients},
    {"composite", composite_gradients}, {"sequence", sequence_gradients}, {"front_end", front_end_gradients},
};

Tensor values(IntArrayRef sizes, const GradientInput& input) {
  return rand(sizes, TensorOptions(kFloat64)).mul(input.high - input.low).add(input.low);
}

Tensor contiguous_leaf(const GradientInput& input) { return values(input.sizes, input).set_requires_grad(true); }

/// Dims in reverse order in memory, every second element used.
Tensor strided_leaf(const GradientInput& input) {
  std::vector<std::int64_t> sizes(input.sizes.rbegin(), input.sizes.rend());
  std::vector<std::int64_t> order(sizes.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(order.size() - 1 - d);
  if (sizes.empty()) return contiguous_leaf(input);
  const std::int64_t last = sizes.back();
  sizes.back() = 2 * last;
  return values(sizes, input).slice(-1, 0, 2 * last, 2).permute(order).detach().set_requires_grad(true);
}

/// The first dim of more than one element is one element, which the function sees in every place of that dim.
struct Broadcast {
  Tensor leaf;
  std::vector<std::int64_t> sizes;

  explicit Broadcast(const GradientInput& input) : sizes(input.sizes) {
    std::vector<std::int64_t> narrow = sizes;
    const auto wide = std::find_if(narrow.begin(), narrow.end(), [](std::int64_t size) { return size > 1; });
    if (wide != narrow.end()) *wide = 1;
    leaf = values(narrow, input).set_requires_grad(true);
  }
};

class Gradients : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    RecordProperty("seed", std::to_string(kSeed));
    manual_seed(kSeed);
  }

  /// Every row of the family at leaves that `leaf` makes.
  static void check_leaves(Tensor (*leaf)(const GradientInput&)) {
    for (const GradientCase& row : GetParam().rows()) {
      std::vector<Tensor> inputs;
      for (const GradientInput& input : row.inputs) inputs.push_back(leaf(input));
      check_gradients(row.name, row.function, inputs, row.check);
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(Gradients, OfContiguousInputs) { check_leaves(contiguous_leaf); }

TEST_P(Gradients, OfStridedInputs) { check_leaves(strided_leaf); }

TEST_P(Gradients, OfBroadcastInputs) {
  for (const GradientCase& row : GetParam().rows()) {
    std::vector<Tensor> leaves;
    std::vector<std::vector<std::int64_t>> sizes;
    for (const GradientInput& input : row.inputs) {
      Broadcast broadcast(input);
      leaves.push_back(broadcast.leaf);
      sizes.push_back(broadcast.sizes);
    }
    const Function expanded = [&](const std::vector<Tensor>& x) {
      std::vector<Tensor> wide;
      for (std::size_t i = 0; i < x.size(); ++i) wide.push_back(x[i].expand(sizes[i]));
      return row.function(wide);
    };
    check_gradients(row.name, expanded, leaves, row.check);
    if (HasFatalFailure()) return;
  }
}

// What has no elements has a gradient of its own sizes, and adds nothing to the gradients of what it was combined with.
TEST_P(Gradients, OfEmptyInputs) {
  for (const GradientCase& row : GetParam().rows()) {
    SCOPED_TRACE(row.name);
    ASSERT_TRUE(row.empty_sizes.size() == row.inputs.size()) << "the row does not say what its empty inputs are";
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      inputs.push_back(values(row.empty_sizes[i], row.inputs[i]).set_requires_grad(true));
    }
    const Function& function = row.empty_function ? row.empty_function : row.function;
    if (!row.empty_error.empty()) {
      try {
        function(inputs);
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(row.empty_error));
      }
      continue;
    }
    function(inputs).sum().backward();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor gradient = inputs[i].grad();
      ASSERT_TRUE(gradient.defined()) << "input " << i;
      EXPECT_EQ(gradient.sizes().vec(), inputs[i].sizes().vec()) << "input " << i;
      EXPECT_TRUE(gradient.equal(zeros_like(gradient))) << "input " << i;
    }
  }
}

/// "float64 (3, 4) by (4, 1)", or that there is none.
std::string form_of(const Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  std::ostringstream text;
  text << toString(tensor.scalar_type()) << ' ' << tensor.sizes() << " by " << tensor.strides();
  return text.str();
}

/// The forms of a row's result and of its gradients.
std::vector<std::string> forms_of(const GradientCase& row, const std::vector<Tensor>& inputs) {
  const Tensor output = row.function(inputs);
  std::vector<std::string> forms{form_of(output)};
  for (const Tensor& gradient : autograd::grad({output.sum()}, inputs, {}, std::nullopt, false, true)) {
    forms.push_back(form_of(gradient));
  }
  return forms;
}

// A device that holds no data gives everything the form that it has on the host.
TEST_P(Gradients, OfTensorsWithoutDataHaveTheFormOfTheHosts) {
  for (const GradientCase& row : GetParam().rows()) {
    if (row.name == "pin_memory") continue;  // for tensors of the host
    SCOPED_TRACE(row.name);
    for (const auto leaf : {contiguous_leaf, strided_leaf}) {
      std::vector<Tensor> inputs, without_data;
      for (const GradientInput& input : row.inputs) {
        inputs.push_back(leaf(input));
        const Tensor& one = inputs.back();
        without_data.push_back(
            empty_strided(one.sizes(), one.strides(), one.options().device("meta")).set_requires_grad(true));
      }
      try {
        EXPECT_EQ(forms_of(row, without_data), forms_of(row, inputs));
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Gradients, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.name); });

// --- none is left out
// --------------------------------------------------------------------------------------------------

/// Names of all nodes that the graph of `root` is made of.
void collect(const Tensor& root, std::set<std::string>& names) {
  std::vector<autograd::Node*> open;
  std::unordered_set<autograd::Node*> seen;
  if (root.grad_fn()) open.push_back(root.grad_fn().get());
  while (!open.empty()) {
    autograd::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    names.insert(node->name());
    for (const autograd::Edge& edge : node->next_edges()) {
      if (edge.function) open.push_back(edge.function.get());
    }
  }
}

std::set<std::string> checked_nodes() {
  std::set<std::string> names;
  for (const Family& family : kFamilies) {
    for (const GradientCase& row : family.rows()) {
      std::vector<Tensor> inputs;
      for (const GradientInput& input : row.inputs) inputs.push_back(contiguous_leaf(input));
      const Tensor output = row.function(inputs);
      const Tensor loss = weighted(output * output);
      collect(loss, names);
      if (!row.check.twice) continue;
      for (const Tensor& gradient : autograd::grad({loss}, inputs, {}, std::nullopt, true, true)) {
        if (gradient.defined()) collect(gradient, names);
      }
    }
  }
  return names;
}

/// The names in record<…>("…Backward0" …) and the like of the operators' sources.
std::set<std::string> nodes_in_sources() {
  std::set<std::string> names;
  const std::regex name("\"([A-Z][A-Za-z0-9]*Backward[A-Za-z0-9]*)\"");
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(TENON_SOURCE_DIR) / "framework/tenon/ops")) {
    if (file.path().extension() != ".cpp") continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const std::string content = text.str();
    for (std::sregex_iterator match(content.begin(), content.end(), name), end; match != end; ++match) {
      names.insert((*match)[1]);
    }
  }
  return names;
}

template <class... Rows>
void insert_names(std::set<std::string>& names, pointwise::List<Rows...>) {
  const auto node = [](std::string_view op) {  // "tanh" -> "TanhBackward0"
    std::string text;
    bool upper = true;
    for (const char c : op) {
      if (c == '_') {
        upper = true;
      } else {
        text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        upper = false;
      }
    }
    return text + "Backward0";
  };
  (names.insert(node(Rows::name)), ...);
}

TEST(Gradient, OfEveryOperatorIsChecked) {
  manual_seed(kSeed);
  std::set<std::string> wanted = nodes_in_sources();
  ASSERT_GT(wanted.size(), 50u) << "no sources under " << TENON_SOURCE_DIR;
  insert_names(wanted, pointwise::Unary{});
  insert_names(wanted, pointwise::Binary{});
  const std::set<std::string> checked = checked_nodes();
  std::vector<std::string> missing;
  std::set_difference(wanted.begin(), wanted.end(), checked.begin(), checked.end(), std::back_inserter(missing));
  EXPECT_THAT(missing, ::testing::IsEmpty()) << "add a row to the table of its family in tests/ops/gradients";
}

}  // namespace
}  // namespace tenon::test
