// Calls functions of tensors as the lines of its input say and writes what came of each: built once against Tenon and
// once against libtorch, whose outcomes differential.py compares. `--list` prints every row with its arguments.
#include "table.h"

#include <iostream>
#include <map>
#include <sstream>

#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#endif

namespace differential {

// Declared where it is called: its rows came later.
void add_special();

std::vector<Row>& table() {
  static std::vector<Row> rows;
  return rows;
}

namespace {

/// "order,in_place,guard": gradients up to this order; whether argument 0 is written to; "-", "nograd" or "inference",
/// or what is done between the call and its gradients: "write3", number 3 of the tensors given and returned is written
/// to under NoGradGuard; "chain3", as an operator that is recorded.
struct Flags {
  int order = 0;
  std::string guard = "-";
  bool in_place = false;

  bool is(std::string_view what) const { return guard.starts_with(what); }
};

Tensor weighted_sum(const std::vector<Tensor>& tensors, std::uint64_t seed) {
  Tensor sum;
  for (const auto& tensor : tensors) {
    ++seed;  // of each: one side may have left undefined what is zeros in the other
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    const auto part = (tensor * weights(tensor, seed)).sum().to(torch::kFloat64);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

std::vector<Tensor> gradients(const Tensor& sum, const std::vector<Tensor>& leaves, bool create_graph) {
  return torch::autograd::grad({sum}, leaves, {}, /*retain_graph=*/true, create_graph, /*allow_unused=*/true);
}

/// libtorch tells with each refusal which functions had called: ten times the time of a call, and only the first line
/// is compared.
void tell_no_stacks() {
#if __has_include(<c10/util/Logging.h>)
  c10::SetStackTraceFetcher([] { return std::string(); });
#endif
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Writes to what the flags name, numbers beyond the last begin anew.
void write_later(const Arguments& arguments, const Values& values, const Flags& flags) {
  std::vector<Tensor> all = arguments.given;
  for (const auto& value : values) all.push_back(value.tensor);
  std::erase_if(all, [](const Tensor& tensor) { return !tensor.defined(); });
  if (all.empty()) return;
  Tensor& chosen = all[std::stoul(flags.guard.substr(5)) % all.size()];
  if (flags.is("write")) {
    const torch::NoGradGuard guard;
    chosen.fill_(1);
  } else {
    chosen.mul_(2);
  }
}

std::string outcome(const Row& row, Arguments& arguments, const Flags& flags) {
  std::string line = "ok";
  std::string stage = "call";
  try {
    std::optional<torch::NoGradGuard> no_grad;
    std::optional<torch::InferenceMode> inference;
    if (flags.guard == "nograd") no_grad.emplace();
    if (flags.guard == "inference") inference.emplace();
    begin_call();
    arguments.copies_leaves = flags.in_place && !no_grad && !inference;
    auto values = row.call(arguments);
    if (flags.in_place) {
      for (const auto& tensor : arguments.given) values.push_back({tensor, ""});
    }
    for (const auto& value : values) line += " " + written(value);
    std::vector<Tensor> outputs;
    for (const auto& value : values) outputs.push_back(value.tensor);
    if (flags.is("chain")) {
      stage = "write";
      write_later(arguments, values, flags);
      for (const auto& output : outputs) line += " " + written(output);
    }
    if (flags.order > 0 && !arguments.leaves.empty()) {
      stage = "gradient";
      const auto sum = weighted_sum(outputs, 11);
      if (flags.is("write")) {
        stage = "write";
        write_later(arguments, values, flags);
        stage = "gradient";
      }
      if (sum.defined()) {
        const auto first = gradients(sum, arguments.leaves, flags.order > 1);
        for (const auto& gradient : first) line += " g=" + written(gradient.defined() ? gradient.detach() : gradient);
        const auto second_sum = flags.order > 1 ? weighted_sum(first, 23) : Tensor();
        if (second_sum.defined()) {
          stage = "second gradient";
          for (const auto& gradient : gradients(second_sum, arguments.leaves, false)) {
            line += " h=" + written(gradient.defined() ? gradient.detach() : gradient);
          }
        }
      }
    }
  } catch (const BadCall& error) {
    return std::string("bad ") + first_line(error.what());
  } catch (const std::exception& error) {
    return line + " error:" + stage + " " + first_line(error.what());
  }
  return line;
}

}  // namespace
}  // namespace differential

int main(int count, char** words) {
  using namespace differential;
  add_pointwise();
  add_reductions();
  add_shapes();
  add_linalg();
  add_indexing();
  add_nn();
  add_modules();
  add_creation();
  add_functional();
  add_more_modules();
  add_optimizers();
  add_facts();
  add_special();
  if (count > 1 && std::string_view(words[1]) == "--list") {
    for (const auto& row : table()) std::cout << row.name << '\t' << row.arguments << '\n';
    return 0;
  }
  tell_no_stacks();
  torch::set_num_threads(1);
  std::map<std::string, const Row*> by_name;
  for (const auto& row : table()) by_name[row.name] = &row;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string name, flag_word;
    in >> name >> flag_word;
    Flags flags;
    flags.order = flag_word.at(0) - '0';
    flags.in_place = flag_word.at(1) == 'w';
    flags.guard = flag_word.substr(2);
    std::vector<std::string> arguments;
    for (std::string word; in >> word;) arguments.push_back(word);
    const auto row = by_name.find(name);
    Arguments read(std::move(arguments));
    // Marked, since libraries print errors of their own there.
    std::cout << '>' << (row == by_name.end() ? "bad unknown row" : outcome(*row->second, read, flags)) << std::endl;
  }
  return 0;
}
