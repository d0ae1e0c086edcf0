// Owners by the names of parameters, and the report. Training's part is declared in training.h.
#include <tenon/train/step/run_attribution.h>

#include <tenon/train/training.h>

#include <map>
#include <string>
#include <utility>

namespace tenon::train {

namespace {

void own(memory::Attribution& attribution, const Tensor& tensor, const std::string& module) {
  if (!tensor.defined()) return;
  const StorageImpl& storage = tensor.impl().storage();
  if (storage.is_there() && storage.nbytes() > 0) attribution.own(storage.block().data, module);
}

}  // namespace

void name_owners(memory::Attribution& attribution, const nn::Module& module, optim::Optimizer* optimizer,
                 const std::vector<Tensor>& trained) {
  std::map<std::string, std::string> module_of_state;
  std::size_t next = 0;
  const auto owner_of = [&](const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? module.name() : name.substr(0, dot);
  };
  for (const auto& named : module.named_parameters()) {
    const std::string owner = owner_of(named.key());
    const Tensor& parameter = named.value();
    own(attribution, parameter, owner);
    own(attribution, parameter.grad(), owner);
    module_of_state[optim::state_key(parameter)] = owner;
    if (!parameter.requires_grad() || next >= trained.size()) continue;
    own(attribution, trained[next], owner);
    own(attribution, trained[next].grad(), owner);
    module_of_state[optim::state_key(trained[next++])] = owner;
  }
  for (const auto& named : module.named_buffers()) own(attribution, named.value(), owner_of(named.key()));
  if (optimizer == nullptr) return;
  for (const auto& [key, state] : optimizer->state()) {
    const auto owner = module_of_state.find(key);
    if (state == nullptr || owner == module_of_state.end()) continue;
    for (const optim::StateTensor& kept : state->tensors())
      if (kept.tensor != nullptr) own(attribution, *kept.tensor, owner->second);
  }
}

RunAttribution::RunAttribution(DeviceState& device, ProgressSink& progress,
                               std::function<void(memory::Attribution&)> name_owners)
    : device_(device),
      name_owners_(std::move(name_owners)),
      attribution_(device.allocator(), device.allocator().stats()) {
  observer_ = add_oom_observer([this, &progress](const OutOfMemoryInfo& info) {
    const Device failed(info.device);  // "cpu" has no number
    if (failed.type() != device_.device().type() || (failed.has_index() && failed != device_.device())) return;
    name_owners_(attribution_);
    progress.attributed(attribution_.report_at_failure(mapped_segments_of(device_.allocator()), info.requested_bytes));
  });
}

RunAttribution::~RunAttribution() { remove_oom_observer(observer_); }

memory::AttributionReport RunAttribution::report() {
  name_owners_(attribution_);
  return attribution_.report();
}

void Training::attribute() {
  if (!config_.section("report").boolean("attribution")) return;
  attribution_.emplace(device_, progress_, [this](memory::Attribution& attribution) {
    if (model_.module)
      name_owners(attribution, *model_.module, optimizer_.get(),
                  masters_ ? masters_->parameters() : std::vector<Tensor>());
  });
}

void Training::check_attribution(std::string_view when) {
  if (attribution_) attribution_->check(when);
}

}  // namespace tenon::train
