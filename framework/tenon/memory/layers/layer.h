// Layer: an adaptor that stands around any allocator; they stack in any order. A built-in one is a file layers/NAME.cpp
// that defines `LayerInfo NAME_layer()`, and its name in the list of memory/CMakeLists.txt.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/forwarding.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class ObservedSource;
class PolicyObserver;

/// What a layer is told when it is made; valid during the call unless said otherwise.
struct LayerContext {
  const Options& options;              ///< of the layer, validated
  SourceTraits traits;                 ///< of the device
  MemorySource& source;                ///< what the policy sees; outlives the layer
  ObservedSource& observed;            ///< the stack's counters and ceiling; outlives the layer
  PolicyObserver* observer = nullptr;  ///< for an allocator that the layer makes itself
  MemorySource* hook = nullptr;        ///< what this layer's wrap_source made; outlives the layer
};

/// An allocator around another one that can also speak for itself.
class LayerAllocator : public ForwardingAllocator {
 public:
  using ForwardingAllocator::ForwardingAllocator;
  /// Entries for the run's report, in the order in which to show them. Called like report(): serialised by the host.
  virtual std::vector<std::pair<std::string, std::string>> summary() const { return {}; }
  /// The program says where it is: a step, a phase.
  virtual void mark(std::string_view) {}
};

/// One layer.
struct LayerInfo {
  std::string name;     ///< as in TOML `layers = ["limit"]`, options in [allocator.limit]
  std::string summary;  ///< one line
  OptionSchema options;
  std::function<std::unique_ptr<LayerAllocator>(std::unique_ptr<Allocator> inner, const LayerContext& context)> create;
  /// For layers that act on the policy's calls to the device; empty for the others. Called before the policy exists.
  std::function<std::unique_ptr<MemorySource>(MemorySource& upstream, const LayerContext& context)> wrap_source;
};

/// Every built-in layer, in alphabetical order.
TENON_API const std::vector<LayerInfo>& built_in_layers();

/// A layer of the program's own: find_layer knows it from now on, the lists for users do not show it. An older one of
/// that name is replaced.
TENON_API void add_private_layer(LayerInfo layer);

/// The layer of that name. Throws ConfigError that names the nearest known one.
TENON_API const LayerInfo& find_layer(std::string_view name);

/// How the layer `route` finds the allocator that its options name, as in SPEC ("direct", "caching:max_split_size=…");
/// set once by the layer of Tenon that knows plugins.
struct ResolvedAllocator {
  AllocatorInfo info;
  Options options;
};
using AllocatorResolver = ResolvedAllocator (*)(std::string_view spec);
TENON_API void set_allocator_resolver(AllocatorResolver resolver);
/// What stands before the allocators that layers make from now on, as a run's watch does; empty: nothing.
using AllocatorDecorator = std::function<AllocatorInfo(const AllocatorInfo& info, std::string_view spec)>;
TENON_API void set_allocator_decorator(AllocatorDecorator decorator);
/// Found, and decorated.
ResolvedAllocator resolve_allocator(std::string_view spec);

}  // namespace tenon
