// Data parallelism: the parts that know no module's type.
#include <tenon/nn/parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/error.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/memory/history/thread_start.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>

#include <fmt/format.h>

#include <exception>
#include <thread>

namespace tenon {

namespace autograd {

namespace {

/// Sums the gradients that arrive from the replicas of one parameter, on the parameter's device.
class ReduceAdd final : public Node {
 public:
  explicit ReduceAdd(const Tensor& parameter) : device_(parameter.device()) { add_next_edge(gradient_edge(parameter)); }
  std::string name() const override { return "ReduceAdd"; }
  GradList apply(GradList&& gradients) override {
    NoGradGuard no_grad;
    Tensor sum;
    for (const Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;  // that replica was not used
      const Tensor here = gradient.to(device_, gradient.scalar_type());
      sum = sum.defined() ? sum.add(here) : here;
    }
    GradList result;
    result.push_back(std::move(sum));
    return result;
  }

 private:
  Device device_;
};

}  // namespace

Scatter::Scatter(std::vector<Device> devices, std::optional<std::vector<std::int64_t>> sizes, std::int64_t dim)
    : devices_(std::move(devices)), sizes_(std::move(sizes)), dim_(dim) {
  if (devices_.empty()) throw Error("Scatter: Expected at least one device to scatter to");
  if (sizes_ && sizes_->size() != devices_.size()) {
    throw Error(fmt::format("Scatter: {} sizes for {} devices", sizes_->size(), devices_.size()));
  }
}

variable_list Scatter::apply(const variable_list& inputs) const {
  if (inputs.size() != 1) throw Error(fmt::format("Scatter: Expected one tensor, got {}", inputs.size()));
  const Tensor& whole = inputs.front();
  variable_list parts =
      sizes_ ? whole.split_with_sizes(*sizes_, dim_) : whole.chunk(static_cast<std::int64_t>(devices_.size()), dim_);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].to(devices_[i], whole.scalar_type());
  return parts;
}

variable_list Gather::apply(const variable_list& inputs) const {
  if (inputs.empty()) throw Error("Gather: Expected at least one tensor");
  variable_list parts;
  for (const Tensor& input : inputs) {
    const Tensor here = input.to(destination_, input.scalar_type());
    parts.push_back(here.dim() == 0 ? here.unsqueeze(0) : here);
  }
  return {cat(parts, dim_)};
}

}  // namespace autograd

namespace nn::parallel::detail {

void share_gradients(const Module& module, const std::vector<std::shared_ptr<Module>>& replicas) {
  for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
    if (!parameter.value().defined()) continue;
    const bool wanted = parameter.value().requires_grad();
    const auto sum = make_intrusive<autograd::ReduceAdd>(parameter.value());
    for (const auto& replica : replicas) {
      Tensor copy = replica->named_parameters(/*recurse=*/false)[parameter.key()];
      copy.set_requires_grad(wanted);  // clone() made it anew
      if (wanted) autograd::set_history(copy, sum);
    }
  }
  for (const auto& child : module.named_children()) {
    std::vector<std::shared_ptr<Module>> copies;
    for (const auto& replica : replicas) copies.push_back(replica->named_children()[child.key()]);
    share_gradients(*child.value(), copies);
  }
}

std::vector<Tensor> apply_all(std::size_t count, const std::function<Tensor(std::size_t)>& compute) {
  std::vector<Tensor> outputs(count);
  std::vector<std::exception_ptr> errors(count);
  const bool recording = GradMode::is_enabled();
  const double begun_us = virtual_time_us();
  std::vector<double> ended_us(count);
  const ThreadStart start;
  const auto run = [&](std::size_t i) {
    try {
      AutoGradMode mode(recording);
      advance_virtual_time(begun_us);
      outputs[i] = compute(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
    ended_us[i] = virtual_time_us();
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < count; ++i)
      threads.emplace_back([&, i] {
        const ThreadStart::Scope scope(start);
        run(i);
      });
    if (count > 0) run(0);
  }
  for (const double end : ended_us) advance_virtual_time(end);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return outputs;
}

void keep_first(std::vector<Device>& devices, std::size_t count) { devices.resize(count, Device(kCPU)); }

std::vector<Device> devices_or_all(const std::optional<std::vector<Device>>& devices) {
  std::vector<Device> chosen = devices.value_or(std::vector<Device>{});
  if (!devices) {
    for (std::size_t i = 0; i < cuda::device_count(); ++i) {
      chosen.emplace_back(kCUDA, static_cast<DeviceIndex>(i));
    }
  }
  if (chosen.empty()) {
    throw Error(devices ? "data_parallel: no device is named"
                        : "data_parallel: Expected at least one CUDA device to be available; name the devices");
  }
  return chosen;
}

}  // namespace nn::parallel::detail
}  // namespace tenon
