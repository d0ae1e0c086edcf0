// Old archives: the lists are turned into one archive per parameter.
#include <tenon/optim/old_archive.h>

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

std::vector<Tensor> read_list(InputArchive& archive, const std::string& key, std::size_t most) {
  Tensor size;
  if (!archive.try_read(key + "/size", size)) return {};
  const auto count = size.item<std::int64_t>();
  if (count < 0 || static_cast<std::size_t>(count) > most) {
    throw Error(
        fmt::format("the old archive's '{}' has {} elements, the optimiser has {} parameters", key, count, most));
  }
  std::vector<Tensor> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = key + "/" + std::to_string(i);
    if (!archive.try_read(name, list[i])) throw Error(fmt::format("the old archive lacks '{}'", name));
  }
  return list;
}

}  // namespace

std::vector<OutputArchive> states_of_old_archive(InputArchive& archive, std::size_t parameters) {
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
