// The table of built-in layers, and finding one by name.
#include <tenon/core/error.h>
#include <tenon/memory/layers/built_in.h>

#include <fmt/format.h>

#include <atomic>

namespace tenon {

namespace {

std::atomic<AllocatorResolver> allocator_resolver{nullptr};

}  // namespace

const std::vector<LayerInfo>& built_in_layers() {
  static const auto* layers = new std::vector<LayerInfo>{
      align_layer(), budget_layer(), guard_layer(), inject_layer(), limit_layer(),
      retry_layer(), route_layer(),  stats_layer(), trace_layer(),  track_layer(),
  };
  return *layers;
}

const LayerInfo& find_layer(std::string_view name) {
  std::vector<std::string> names;
  for (const LayerInfo& layer : built_in_layers()) {
    if (layer.name == name) return layer;
    names.push_back(layer.name);
  }
  std::string message = fmt::format("unknown layer '{}'", name);
  if (const std::string nearest = nearest_name(name, names); !nearest.empty()) {
    message += fmt::format("; did you mean '{}'?", nearest);
  }
  throw ConfigError(message + fmt::format(" Layers are: {}", fmt::join(names, ", ")));
}

void set_allocator_resolver(AllocatorResolver resolver) { allocator_resolver.store(resolver); }

ResolvedAllocator resolve_allocator(std::string_view spec) {
  const AllocatorResolver resolver = allocator_resolver.load();
  if (resolver == nullptr) {
    throw ConfigError(fmt::format("allocator '{}' cannot be found: no plugins are known in this process", spec));
  }
  return resolver(spec);
}

}  // namespace tenon
