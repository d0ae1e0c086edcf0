// Layers and what two of them share.
#include <tenon/train/parallel/layers.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <algorithm>
#include <cctype>

namespace tenon::train {

LayerImpl::LayerImpl(Function function, const Owned& owned) : function_(std::move(function)) {
  for (const auto& [name, module] : owned) register_module(name, module);
}

const Tensor& TiedWeight::on(Device device) {
  if (original_.device() == device) return original_;
  if (is_current_) return copy_;
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  if (copy_.defined()) {
    copy_.detach().copy_(original_.detach());
  } else {
    copy_ = original_.detach().to(device, original_.scalar_type()).set_requires_grad(original_.requires_grad());
  }
  is_current_ = true;
  return copy_;
}

void TiedWeight::give_back() {
  is_current_ = false;  // the update changes the parameter
  if (!copy_.defined() || !copy_.grad().defined()) return;
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kGradient);
  const Tensor gradient = copy_.grad().to(original_.device(), original_.scalar_type());
  copy_.mutable_grad() = Tensor();
  Tensor& sum = original_.mutable_grad();
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = gradient;
  }
}

void TiedWeight::forget() {
  is_current_ = false;
  if (copy_.defined()) copy_.mutable_grad() = Tensor();
}

void ModelLayers::append_head(const nn::Linear& head, const Tensor& table) {
  leaves_out_head = std::make_shared<bool>(false);
  if (!head.is_empty()) {
    head_input = [head](const Tensor& hidden) {
      return HeadInput{.hidden = hidden, .weight = head->weight, .bias = head->bias};
    };
    layers->push_back("head", Layer([head = head, bare = leaves_out_head](
                                        const Tensor& hidden) mutable { return *bare ? hidden : head(hidden); },
                                    LayerImpl::Owned{{"head", head.ptr()}}));
    return;
  }
  tied = std::make_shared<TiedWeight>(table);
  head_input = [tied = tied](const Tensor& hidden) {
    return HeadInput{.hidden = hidden, .weight = tied->on(hidden.device()), .bias = {}};
  };
  layers->push_back("head", Layer([tied = tied, bare = leaves_out_head](const Tensor& hidden) {
                      return *bare ? hidden : tenon::linear(hidden, tied->on(hidden.device()));
                    }));
}

std::vector<ParameterSizes> parameter_sizes(const nn::Module& module, const ModelLayers& layers,
                                            const std::vector<Device>& devices) {
  std::vector<ParameterSizes> sizes(devices.size());
  const auto of_device = [&](const Tensor& parameter) -> ParameterSizes* {
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (devices.size() == 1 || parameter.device() == devices[i]) return &sizes[i];
    return nullptr;
  };
  const auto bytes_of = [](const Tensor& parameter) { return static_cast<std::int64_t>(parameter.nbytes()); };
  for (const Tensor& parameter : module.parameters()) {
    ParameterSizes* const there = of_device(parameter);
    if (there == nullptr) continue;
    there->bytes += bytes_of(parameter);
    if (!parameter.requires_grad()) continue;
    there->trained_bytes += bytes_of(parameter);
    there->largest_bytes = std::max(there->largest_bytes, bytes_of(parameter));
  }
  std::vector<std::int64_t> before(devices.size());
  for (const auto& layer : layers.is_empty() ? module.named_children() : layers.layers->named_children()) {
    const std::vector<Tensor> parameters = layer.value()->parameters();
    std::int64_t bytes = 0;
    for (const Tensor& parameter : parameters) bytes += bytes_of(parameter);
    if (parameters.empty() || std::isdigit(static_cast<unsigned char>(layer.key().back())) == 0) continue;
    const ParameterSizes* const of_layer = of_device(parameters.front());
    if (of_layer == nullptr) continue;
    const auto there = static_cast<std::size_t>(of_layer - sizes.data());
    sizes[there].pair_bytes = std::max(sizes[there].pair_bytes, before[there] + bytes);
    sizes[there].other_bytes += bytes;
    before[there] = bytes;
  }
  for (ParameterSizes& size : sizes) size.other_bytes = size.bytes - size.other_bytes;
  return sizes;
}

}  // namespace tenon::train
