// The state of autocast, and the casts of parameters that a thread keeps.
#include <tenon/autograd/autocast.h>
#include <tenon/autograd/autocast_cast.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/variable.h>
#include <tenon/memory/purpose.h>

#include <fmt/format.h>

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::autocast {
namespace {

/// A parameter's cast. Holding the parameter keeps its address from being another one's.
struct Kept {
  Tensor parameter, cast;
  std::int64_t version = 0;  ///< of the parameter when it was cast
};

thread_local int nesting = 0;

/// They go in the order in which they came: where blocks are freed in another order in each run of a program, an
/// allocator serves each of them in another way, and one may run out of memory where the one before did not.
class KeptCasts {
 public:
  Kept& of(const Tensor& parameter) {
    const auto [place, is_new] = places_.try_emplace(&parameter.impl(), in_order_.size());
    if (is_new) in_order_.emplace_back();
    return in_order_[place->second];
  }
  void clear() {
    places_.clear();
    for (Kept& one : std::exchange(in_order_, {})) one = {};
  }

 private:
  std::unordered_map<const TensorImpl*, std::size_t> places_;
  std::vector<Kept> in_order_;
};

thread_local KeptCasts kept;

std::atomic<std::uint32_t> kinds_like_cpu{bit_of(kCPU)};

void set_bit(std::uint32_t& bits, DeviceType kind, bool on) { bits = on ? bits | bit_of(kind) : bits & ~bit_of(kind); }

bool is_kept(Dtype dtype, const Tensor& tensor, DeviceType kind) {
  return autograd::modes.autocast.keeps_casts && dtype == get_autocast_dtype(kind) &&
         tensor.scalar_type() == Dtype::kFloat32 && tensor.requires_grad() && tensor.is_leaf() && !tensor.is_view();
}

}  // namespace

bool is_autocast_enabled(DeviceType kind) { return (autograd::modes.autocast.kinds & bit_of(kind)) != 0; }
void set_autocast_enabled(DeviceType kind, bool enabled) { set_bit(autograd::modes.autocast.kinds, kind, enabled); }

Dtype get_autocast_dtype(DeviceType kind) {
  return (autograd::modes.autocast.kinds_of_bfloat16 & bit_of(kind)) != 0 ? Dtype::kBFloat16 : Dtype::kFloat16;
}
void set_autocast_dtype(DeviceType kind, Dtype dtype) {
  if (dtype != Dtype::kFloat16 && dtype != Dtype::kBFloat16) {
    throw Error(fmt::format("autocast on {} computes in float16 or bfloat16, not in {}", kind.name(), name_of(dtype)));
  }
  set_bit(autograd::modes.autocast.kinds_of_bfloat16, kind, dtype == Dtype::kBFloat16);
}

bool is_autocast_cache_enabled() { return autograd::modes.autocast.keeps_casts; }
void set_autocast_cache_enabled(bool enabled) { autograd::modes.autocast.keeps_casts = enabled; }
void clear_cache() { kept.clear(); }
int increment_nesting() { return ++nesting; }
int decrement_nesting() { return --nesting; }

bool has_accelerator_lists(DeviceType kind) {
  return (kinds_like_cpu.load(std::memory_order_relaxed) & bit_of(kind)) == 0;
}
void set_accelerator_lists(DeviceType kind, bool accelerator) {
  if (accelerator) {
    kinds_like_cpu.fetch_and(~bit_of(kind), std::memory_order_relaxed);
  } else {
    kinds_like_cpu.fetch_or(bit_of(kind), std::memory_order_relaxed);
  }
}

bool is_eligible(const Tensor& tensor, DeviceType kind) {
  return tensor.defined() && tensor.device().type() == kind && is_floating_point(tensor.scalar_type()) &&
         tensor.scalar_type() != Dtype::kFloat64;
}

Tensor cached_cast(Dtype dtype, const Tensor& tensor, DeviceType kind) {
  if (!is_eligible(tensor, kind) || tensor.scalar_type() == dtype) return tensor;
  std::optional<LabelGuard> label;  // a user's own says more
  if (current_label() == 0) label.emplace("autocast");
  if (!is_kept(dtype, tensor, kind)) return tensor.to(dtype);
  Kept& entry = kept.of(tensor);
  const bool is_stale = !entry.cast.defined() || entry.version != tensor._version() ||
                        entry.cast.scalar_type() != dtype || (GradMode::is_enabled() && !entry.cast.requires_grad());
  if (is_stale) {
    entry.parameter = tensor;
    entry.version = tensor._version();
    // Neither a parameter nor an activation: what a step needs beside both.
    const PurposeGuard purpose(Purpose::kCast);
    entry.cast = tensor.to(dtype);
  }
  return entry.cast;
}

AutocastAsThen::AutocastAsThen(const autograd::AutocastState& then) : now_(autograd::modes.autocast) {
  autograd::modes.autocast = then;
  increment_nesting();
}
AutocastAsThen::~AutocastAsThen() {
  if (decrement_nesting() == 0) clear_cache();
  autograd::modes.autocast = now_;
}

}  // namespace tenon::autocast

namespace tenon {

AutocastGuard::AutocastGuard(Device device, std::optional<Dtype> dtype, bool enabled, bool cache_enabled)
    : kind_(device.type()),
      was_enabled_(autocast::is_autocast_enabled(kind_)),
      was_cache_enabled_(autocast::is_autocast_cache_enabled()),
      previous_(autocast::get_autocast_dtype(kind_)) {
  if (dtype) autocast::set_autocast_dtype(kind_, *dtype);
  autocast::set_autocast_enabled(kind_, enabled);
  autocast::set_autocast_cache_enabled(cache_enabled);
  autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_autocast_cache_enabled(was_cache_enabled_);
  autocast::set_autocast_enabled(kind_, was_enabled_);
  autocast::set_autocast_dtype(kind_, previous_);
}

}  // namespace tenon
