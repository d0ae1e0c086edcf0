// Old archives: the lists are turned into one archive per parameter.
#include <tenon/optim/support/old_archive.h>

#include <tenon/core/error.h>
#include <tenon/tensor/tensor.h>

#include <fmt/format.h>

#include <string>

namespace tenon::optim {

namespace {

struct OldList {
  const char* key;
  const char* field;
};
constexpr OldList kLists[] = {
    {"sum_buffers", "sum"},
    {"momentum_buffers", "momentum_buffer"},
    {"exp_average_buffers", "exp_avg"},
    {"exp_average_sq_buffers", "exp_avg_sq"},
    {"max_exp_average_sq_buffers", "max_exp_avg_sq"},
    {"square_average_buffers", "square_avg"},
    {"grad_average_buffers", "grad_avg"},
};

/// More pairs than any L-BFGS keeps: what a size beyond it says is a broken file.
constexpr std::size_t kLongestHistory = 100'000;

std::vector<Tensor> read_list(InputArchive& archive, const std::string& key, std::size_t most) {
  Tensor size;
  if (!archive.try_read(key + "/size", size)) return {};
  const auto count = size.item<std::int64_t>();
  if (count < 0 || static_cast<std::size_t>(count) > most) {
    throw Error(
        fmt::format("the old archive's '{}' has {} elements, the optimiser has {} places for them", key, count, most));
  }
  std::vector<Tensor> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = key + "/" + std::to_string(i);
    if (!archive.try_read(name, list[i])) throw Error(fmt::format("the old archive lacks '{}'", name));
  }
  return list;
}

void write_list(OutputArchive& state, const std::string& key, const std::vector<Tensor>& tensors) {
  OutputArchive list;
  list.write("size", static_cast<std::int64_t>(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) list.write(std::to_string(i), tensors[i]);
  state.write(key, list);
}

/// L-BFGS has one state for all parameters, under plain names. The counts, which it did not keep then, start anew.
std::vector<OutputArchive> state_of_old_lbfgs(InputArchive& archive) {
  Tensor last_gradient;
  if (!archive.try_read("prev_flat_grad", last_gradient, /*is_buffer=*/true)) return {};
  OutputArchive state;
  state.write("prev_flat_grad", last_gradient);
  for (const char* key : {"d", "H_diag"}) {
    Tensor value;
    if (archive.try_read(key, value, /*is_buffer=*/true)) state.write(key, value);
  }
  for (const char* key : {"t", "prev_loss"}) {
    Tensor number;
    if (!archive.try_read(key, number, /*is_buffer=*/true)) throw Error(fmt::format("the old archive lacks '{}'", key));
    state.write(key, number.item<double>());
  }
  for (const char* key : {"func_evals", "n_iter"}) state.write(key, std::int64_t{0});
  const std::vector<Tensor> gradients = read_list(archive, "old_dirs", kLongestHistory);
  const std::vector<Tensor> steps = read_list(archive, "old_stps", kLongestHistory);
  if (gradients.size() != steps.size()) {
    throw Error(fmt::format("the old archive has {} 'old_dirs' and {} 'old_stps'", gradients.size(), steps.size()));
  }
  std::vector<Tensor> curvatures;
  for (std::size_t i = 0; i < steps.size(); ++i) curvatures.push_back(gradients[i].dot(steps[i]).reciprocal());
  write_list(state, "old_dirs", gradients);
  write_list(state, "old_stps", steps);
  write_list(state, "ro", curvatures);
  std::vector<OutputArchive> states;
  states.push_back(std::move(state));
  return states;
}

}  // namespace

std::vector<OutputArchive> states_of_old_archive(InputArchive& archive, std::size_t parameters) {
  if (auto lbfgs = state_of_old_lbfgs(archive); !lbfgs.empty()) return lbfgs;
  std::vector<OutputArchive> states;
  const auto state = [&](std::size_t i) -> OutputArchive& {
    if (i >= states.size()) states.resize(i + 1);
    return states[i];
  };
  const std::vector<Tensor> steps = read_list(archive, "step_buffers", parameters);
  for (const OldList& list : kLists) {
    const std::vector<Tensor> tensors = read_list(archive, list.key, parameters);
    for (std::size_t i = 0; i < tensors.size(); ++i) state(i).write(list.field, tensors[i]);
  }
  // Some never counted their steps.
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].write("step", i < steps.size() ? steps[i].item<std::int64_t>() : std::int64_t{0});
  }
  return states;
}

}  // namespace tenon::optim
