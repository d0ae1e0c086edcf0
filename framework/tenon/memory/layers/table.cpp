// The built-in layers, and finding one by name. CMake writes built_in_layers.inc from the list in
// memory/CMakeLists.txt: one ROW(name) for each file layers/NAME.cpp, which defines NAME_layer().
#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace tenon {

#define ROW(name) LayerInfo name##_layer();
#include "built_in_layers.inc"
#undef ROW

namespace {

std::atomic<AllocatorResolver> allocator_resolver{nullptr};

struct Decoration {
  std::mutex mutex;
  AllocatorDecorator decorator;
};

Decoration& decoration() {
  static auto* the_one = new Decoration;
  return *the_one;
}

struct PrivateLayers {
  std::mutex mutex;
  std::vector<std::unique_ptr<const LayerInfo>> newest_last;  // never erased: find_layer hands out references
};

PrivateLayers& private_layers() {
  static auto* layers = new PrivateLayers;
  return *layers;
}

}  // namespace

const std::vector<LayerInfo>& built_in_layers() {
  static const auto* layers = new std::vector<LayerInfo>{
#define ROW(name) name##_layer(),
#include "built_in_layers.inc"
#undef ROW
  };
  return *layers;
}

void add_private_layer(LayerInfo layer) {
  std::lock_guard lock(private_layers().mutex);
  private_layers().newest_last.push_back(std::make_unique<const LayerInfo>(std::move(layer)));
}

const LayerInfo& find_layer(std::string_view name) {
  {
    std::lock_guard lock(private_layers().mutex);
    const auto& all = private_layers().newest_last;
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& layer) { return layer->name == name; });
    if (found != all.rend()) return **found;
  }
  std::vector<std::string> names;
  for (const LayerInfo& layer : built_in_layers()) {
    if (layer.name == name) return layer;
    names.push_back(layer.name);
  }
  std::string message = fmt::format("unknown layer '{}'", name);
  const std::string nearest = nearest_name(name, names);
  message += nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest);
  throw ConfigError(message + fmt::format(" Layers are: {}", fmt::join(names, ", ")));
}

void set_allocator_resolver(AllocatorResolver resolver) { allocator_resolver.store(resolver); }

void set_allocator_decorator(AllocatorDecorator decorator) {
  const std::lock_guard lock(decoration().mutex);
  decoration().decorator = std::move(decorator);
}

ResolvedAllocator resolve_allocator(std::string_view spec) {
  const AllocatorResolver resolver = allocator_resolver.load();
  if (resolver == nullptr) {
    throw ConfigError(fmt::format("allocator '{}' cannot be found: no plugins are known in this process", spec));
  }
  ResolvedAllocator found = resolver(spec);
  const std::lock_guard lock(decoration().mutex);
  if (decoration().decorator) found.info = decoration().decorator(found.info, spec);
  return found;
}

}  // namespace tenon
