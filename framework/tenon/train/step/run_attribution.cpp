// Owners by the names of parameters, and the report. Training's part is declared in training.h.
#include <tenon/train/step/run_attribution.h>

#include <tenon/memory/history/call_site.h>
#include <tenon/memory/history/history.h>
#include <tenon/train/training.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace tenon::train {

namespace {

void own_block(memory::Attribution& attribution, const Tensor& tensor, const memory::Owner& owner) {
  const StorageImpl& storage = tensor.impl().storage();
  if (storage.is_there() && storage.nbytes() > 0)
    attribution.own(storage.block().data, owner, storage.block().request.bytes, storage.block().request.purpose);
}

}  // namespace

void name_owners(memory::Attribution& attribution, const nn::Module& module, optim::Optimizer* optimizer,
                 const std::vector<Tensor>& trained, const std::optional<Device>& only) {
  std::map<std::string, memory::Owner> module_of_state;
  std::size_t next = 0;
  const auto own = [&](const Tensor& tensor, const memory::Owner& owner) {
    if (tensor.defined() && (!only || tensor.impl().storage().device() == *only)) own_block(attribution, tensor, owner);
  };
  // As its scopes say, also where it is a part of a larger tree, and where a module stands in several places of it.
  std::map<const TensorImpl*, memory::Owner> owners;
  const auto owns_its = [&](const nn::Module& one) {
    const memory::Owner owner{.root = nn::type_name_of(one.root()), .path = one.path()};
    for (const auto& list : {one.named_parameters(false), one.named_buffers(false)})
      for (const auto& named : list) owners[&named.value().impl()] = owner;
  };
  owns_its(module);
  for (const auto& below : module.modules(false)) owns_its(*below);
  for (const auto& named : module.named_parameters()) {
    const Tensor& parameter = named.value();
    const memory::Owner& owner = owners[&parameter.impl()];
    own(parameter, owner);
    own(parameter.grad(), owner);
    module_of_state[optim::state_key(parameter)] = owner;
    if (!parameter.requires_grad() || next >= trained.size()) continue;
    own(trained[next], owner);
    own(trained[next].grad(), owner);
    module_of_state[optim::state_key(trained[next++])] = owner;
  }
  for (const auto& named : module.named_buffers()) own(named.value(), owners[&named.value().impl()]);
  if (optimizer == nullptr) return;
  for (const auto& [key, state] : optimizer->state()) {
    const auto owner = module_of_state.find(key);
    if (state == nullptr || owner == module_of_state.end()) continue;
    for (const optim::StateTensor& kept : state->tensors())
      if (kept.tensor != nullptr) own(*kept.tensor, owner->second);
  }
}

RunAttribution::RunAttribution(DeviceState& device, ProgressSink& progress,
                               std::function<void(memory::Attribution&)> name_owners, AttributionWants wants)
    : device_(device),
      name_owners_(std::move(name_owners)),
      attribution_(device.allocator(), device.allocator().stats()) {
  if (wants.last_uses) last_uses_.emplace(attribution_);
  if (wants.call_sites) recording_.emplace(device_.device(), /*lists_tensors=*/false);
  observer_ = add_oom_observer([this, &progress](const OutOfMemoryInfo& info) {
    const Device failed(info.device);  // "cpu" has no number
    if (failed.type() != device_.device().type() || (failed.has_index() && failed != device_.device())) return;
    name_owners_(attribution_);
    std::map<StackId, std::string> sites;
    const auto site_of = [&](const void* address) {
      const StackId stack = device_.history().live_stack(reinterpret_cast<std::uintptr_t>(address));
      const auto [known, is_new] = sites.try_emplace(stack);
      if (is_new && stack != 0) known->second = call_site(device_.history().frames(stack));
      return known->second;
    };
    const memory::KeptBlocks kept = last_uses_ ? last_uses_->kept_for_backward() : memory::KeptBlocks();
    progress.attributed(attribution_.report_at_failure(mapped_segments_of(device_.allocator()), info.requested_bytes,
                                                       recording_ ? memory::SiteOf(site_of) : nullptr,
                                                       last_uses_ ? &kept : nullptr));
  });
}

RunAttribution::~RunAttribution() { remove_oom_observer(observer_); }

memory::AttributionReport RunAttribution::report() {
  name_owners_(attribution_);
  return attribution_.report();
}

void Training::attribute() {
  if (!config_.section("report").boolean("attribution")) return;
  const AttributionWants wants{.call_sites = config_.section("report").boolean("stacks"),
                               .last_uses = config_.devices.size() == 1};
  for (const Device& configured : config_.devices) {
    DeviceState& state = device_state(configured);
    attributions_.push_back(std::make_unique<RunAttribution>(
        state, progress_,
        [this, device = state.device()](memory::Attribution& attribution) {
          const std::vector<Tensor> trained = masters_ ? masters_->parameters() : std::vector<Tensor>();
          if (model_.module) name_owners(attribution, *model_.module, optimizer_.get(), trained, device);
          if (!parallel_) return;
          for (const Model& copy : parallel_->copies()) name_owners(attribution, *copy.module, nullptr, {}, device);
        },
        wants));
  }
}

void Training::check_attribution(std::string_view when) {
  for (const auto& attribution : attributions_) attribution->check(when);
}

void Training::report_attribution() {
  for (const auto& attribution : attributions_) {
    device_attributions_.push_back(attribution->report());
    device_attributions_.back().after_step = first_step_;
  }
  if (!device_attributions_.empty()) result_.attribution = device_attributions_.front();
}

}  // namespace tenon::train
