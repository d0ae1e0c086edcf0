// The stand-in of an experiment's device.
#include <tenon/train/estimate/address_run.h>

#include <tenon/autograd/autocast.h>
#include <tenon/dispatch/rehearsal.h>
#include <tenon/memory/stack/for_trial.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/estimate/planned_ranks.h>
#include <tenon/train/model_on_device.h>
#include <tenon/train/serve/serving.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

namespace tenon::train {

/// Under autocast a stand-in does what the real device would do, while it lives.
class ListsOfOperators {
 public:
  ListsOfOperators(DeviceType stand_in, DeviceType real)
      : stand_in_(stand_in), before_(autocast::has_accelerator_lists(stand_in)) {
    autocast::set_accelerator_lists(stand_in, autocast::has_accelerator_lists(real));
  }
  ~ListsOfOperators() { autocast::set_accelerator_lists(stand_in_, before_); }
  ListsOfOperators(const ListsOfOperators&) = delete;
  ListsOfOperators& operator=(const ListsOfOperators&) = delete;

 private:
  DeviceType stand_in_;
  bool before_;
};

/// Kernels of the stand-in take the workspace of the real device's, where they are the same ones.
class TakesWorkspace {
 public:
  TakesWorkspace(const ExperimentConfig& stand_in, DeviceType real) : stand_in_(stand_in.device.type()) {
    const bool has_same_kernels = find_backend(std::string(stand_in_.name())).kernels_like() == real.name();
    if (!has_same_kernels) return;
    rehearse_workspace(stand_in_, true);
    // Of which each thread has its part.
    const std::int64_t threads = stand_in.section("train").integer("threads");
    if (threads > 0) configured_backend(std::string(real.name())).device(0).set_threads(static_cast<int>(threads));
  }
  ~TakesWorkspace() { rehearse_workspace(stand_in_, false); }
  TakesWorkspace(const TakesWorkspace&) = delete;
  TakesWorkspace& operator=(const TakesWorkspace&) = delete;

 private:
  DeviceType stand_in_;
};

/// The stand-in's kind has afterwards the options that it had: an experiment that says nothing of them runs next.
class KeepsOptions {
 public:
  KeepsOptions() : before_(backend_options(kAddressKind)) {}
  ~KeepsOptions() { set_backend_options(kAddressKind, before_); }
  KeepsOptions(const KeepsOptions&) = delete;
  KeepsOptions& operator=(const KeepsOptions&) = delete;

 private:
  Options before_;
};

bool is_ceiling(const LayerConfig& layer) { return layer.name == "limit" || layer.name == "budget"; }

ExperimentConfig on_addresses(const ExperimentConfig& config, std::size_t capacity) {
  ExperimentConfig stand_in = config;
  stand_in.allocator = for_trial(config.allocator);
  const std::string kind(kAddressKind);
  Options options(find_backend(kind).options());
  options.set("mode", std::string("address-only"));
  options.set(kCapacityOption, capacity);
  stand_in.devices.clear();
  for (std::size_t i = 0; i < std::max<std::size_t>(config.devices.size(), 1); ++i)
    stand_in.devices.emplace_back(DeviceType::named(kind), static_cast<DeviceIndex>(i));
  stand_in.device = stand_in.devices.front();
  options.set("count", static_cast<std::int64_t>(stand_in.devices.size()));
  // Of the real device nothing is asked for but what the host keeps of its own, which that capacity is not for.
  if (const auto real = stand_in.backend_options.find(std::string(config.device.type().name()));
      real != stand_in.backend_options.end() && configured_capacity(config) > 0)
    real->second.set(kCapacityOption, std::size_t{0});
  stand_in.backend_options.insert_or_assign(kind, std::move(options));
  return stand_in;
}

ExperimentConfig under_ceilings(const ExperimentConfig& config, std::size_t capacity) {
  ExperimentConfig stand_in = on_addresses(config, capacity);
  std::erase_if(stand_in.allocator.layers, std::not_fn(is_ceiling));
  return stand_in;
}

std::size_t configured_capacity(const ExperimentConfig& config) {
  const std::string kind(config.device.type().name());
  const auto given = config.backend_options.find(kind);
  const Options options = given != config.backend_options.end() ? given->second : Options(find_backend(kind).options());
  const bool has_it = std::ranges::find(options.schema(), kCapacityOption, &OptionSpec::name) != options.schema().end();
  return has_it ? options.size(kCapacityOption) : 0;
}

struct StandIn::Parts {
  Parts(const ExperimentConfig& stand_in, Device real) {
    // A run before left its allocator on the real device, which must not write its files again.
    if (real.type() != stand_in.device.type())
      set_allocator(real.type().name(), allocator_from_spec(kDefaultAllocator));
    install(stand_in);
    lists.emplace(stand_in.device.type(), real.type());
    workspace.emplace(stand_in, real.type());
    if (real.is_cpu()) order.emplace();
  }

  const KeepsOptions options;  // which are set when all devices are closed
  const ClosesDevices closing;
  std::optional<ListsOfOperators> lists;
  std::optional<TakesWorkspace> workspace;
  std::optional<MakesAsOnHost> order;
};

StandIn::StandIn(const ExperimentConfig& stand_in, Device real) : parts_(std::make_unique<Parts>(stand_in, real)) {}
StandIn::~StandIn() = default;

ExperimentResult run_on_addresses(const ExperimentConfig& stand_in, Device real, TrainingLimits limits,
                                  std::shared_ptr<Communicator> ranks) {
  const StandIn in_service(stand_in, real);
  Silent silent;
  if (serves(stand_in)) return run_serving(stand_in, silent);
  // Divided layers are those of one of their ranks, whoever asks.
  if (ranks == nullptr)
    ranks = planned_ranks({.rank = 0, .size = static_cast<int>(stand_in.section("train").integer("tensor_parallel"))});
  return Training(stand_in, silent, limits, {.ranks = std::move(ranks)}).run();
}

bool lasts_on_addresses(const ExperimentConfig& stand_in, Device real, const ExperimentResult& settled) {
  if (settled.steps >= settled.planned_steps) return true;
  try {
    const ExperimentResult whole = run_on_addresses(stand_in, real, {.steps = kProvenSteps});
    return whole.oom_recoveries <= whole.steps / 50;  // more would cost more time than the last example is worth
  } catch (const OutOfMemory&) {
    return false;
  }
}

}  // namespace tenon::train
