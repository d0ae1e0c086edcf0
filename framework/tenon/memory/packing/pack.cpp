// Components, and who gets the time.
#include <tenon/core/error.h>
#include <tenon/core/seconds_since.h>
#include <tenon/memory/packing/component_packer.h>
#include <tenon/memory/packing/pack.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace tenon::packing {

namespace {

/// Of the time: as much at most for a layer that repeats, and for the rest around it.
constexpr double kPartOfRepeats = 8;

/// One component with its buffers, which its packer looks at as long as there is something to do.
struct Component {
  Order indices;
  std::vector<Buffer> buffers;
  std::unique_ptr<ComponentPacker> packer;
};

class Packing {
 public:
  Packing(std::span<const Buffer> buffers, const PackOptions& options)
      : buffers_(buffers), options_(options), begin_(std::chrono::steady_clock::now()) {}

  PackResult run() {
    check_problem(buffers_);
    check_fixed();
    result_.offsets.resize(buffers_.size());
    if (!buffers_.empty()) {
      const Timeline timeline(buffers_);
      result_.load = std::ranges::max(timeline.load());
      lower_bound_ = timeline.lower_bound();
    }
    for (Order& indices : components(buffers_)) begin(std::move(indices));
    while (Component* const next = worst()) {
      if (is_over()) break;
      next->packer->search();
      tell();
    }
    while (!components_.empty()) finish(components_.size() - 1);
    result_.lower_bound = std::min(lower_bound_, result_.height);
    result_.seconds = seconds();
    result_.is_stopped = is_stopped_;
    return std::move(result_);
  }

 private:
  double seconds() const { return seconds_since(begin_); }

  bool is_over() {
    is_stopped_ = is_stopped_ || (options_.is_stopping && options_.is_stopping());
    if (seconds() - told_ > 0.2) tell();
    return is_stopped_ || seconds() > options_.time_limit_seconds;
  }

  void check_fixed() const {
    std::vector<Buffer> fixed;
    std::vector<std::uint64_t> offsets;
    for (const Buffer& buffer : buffers_) {
      if (!buffer.offset) continue;
      fixed.push_back(buffer);
      offsets.push_back(*buffer.offset);
    }
    if (const std::string flaw = flaw_of(fixed, offsets); !flaw.empty())
      throw ValueError("of the buffers with fixed offsets, counted from 0: " + flaw);
  }

  /// The greedy packings of a component; it is kept where that is not enough.
  void begin(Order indices) {
    Component& component = components_.emplace_back();
    for (const std::uint32_t i : indices) component.buffers.push_back(buffers_[i]);
    component.indices = std::move(indices);
    component.packer = std::make_unique<ComponentPacker>(
        component.buffers, options_.seed, options_.time_limit_seconds / kPartOfRepeats, [this] { return is_over(); });
    set_goal(*component.packer);
    component.packer->greedy();
    if (component.packer->is_done()) finish(components_.size() - 1);
    tell();
  }

  /// What one component cannot be below, all others may be as high as.
  void set_goal(ComponentPacker& packer) {
    lower_bound_ = std::max(lower_bound_, packer.lower_bound());
    packer.set_goal(std::max(lower_bound_, options_.capacity.value_or(0)));
  }

  /// The offsets of a component become those of the result, and it goes.
  void finish(std::size_t place) {
    Component& component = components_[place];
    const ComponentPacker& packer = *component.packer;
    lower_bound_ = std::max(lower_bound_, packer.lower_bound());
    for (std::size_t i = 0; i < component.indices.size(); ++i)
      result_.offsets[component.indices[i]] = packer.offsets()[i];
    if (packer.height() > result_.height) {
      result_.height = packer.height();
      result_.method = packer.method();
    }
    std::swap(component, components_.back());
    components_.pop_back();
  }

  /// The highest of those that may become lower; null: all is done, or it is proven that the capacity is too small.
  Component* worst() {
    for (Component& component : components_) set_goal(*component.packer);
    if (options_.capacity && lower_bound_ > *options_.capacity) return nullptr;
    Component* highest = nullptr;
    for (std::size_t i = components_.size(); i-- > 0;) {
      set_goal(*components_[i].packer);
      if (components_[i].packer->is_done()) finish(i);
    }
    for (Component& component : components_)
      if (highest == nullptr || component.packer->height() > highest->packer->height()) highest = &component;
    return highest;
  }

  void tell() {
    told_ = seconds();
    if (!options_.listener) return;
    std::uint64_t height = result_.height;
    for (const Component& component : components_)
      if (!component.packer->offsets().empty()) height = std::max(height, component.packer->height());
    options_.listener({height, lower_bound_, told_});
  }

  std::span<const Buffer> buffers_;
  const PackOptions& options_;
  const std::chrono::steady_clock::time_point begin_;
  std::vector<Component> components_;
  PackResult result_;
  std::uint64_t lower_bound_ = 0;
  double told_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

PackResult pack(std::span<const Buffer> buffers, const PackOptions& options) { return Packing(buffers, options).run(); }

}  // namespace tenon::packing
