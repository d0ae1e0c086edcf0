// What operators and the engine need of autocast beside libtorch's functions: what it may touch, and scopes.
#pragma once

#include <tenon/autograd/autocast.h>
#include <tenon/autograd/modes.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::autocast {

/// The bit of a kind in AutocastState.
constexpr std::uint32_t bit_of(DeviceType kind) { return std::uint32_t{1} << kind.id(); }

/// Whether autocast may change the tensor's dtype: a floating one but float64, on a device of that kind.
bool is_eligible(const Tensor& tensor, DeviceType kind);

/// Autocast as it was at another time, of this thread, while it lives: for what is computed a second time.
class AutocastAsThen {
 public:
  explicit AutocastAsThen(const autograd::AutocastState& then);
  ~AutocastAsThen();
  AutocastAsThen(const AutocastAsThen&) = delete;
  AutocastAsThen& operator=(const AutocastAsThen&) = delete;

 private:
  autograd::AutocastState now_;
};

/// No casts for these kinds while it lives: inside a cast operator, and inside a backward formula, which computes in
/// the dtypes of the forward.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(std::uint32_t kinds = ~std::uint32_t{0}) noexcept : before_(autograd::modes.autocast.kinds) {
    autograd::modes.autocast.kinds &= ~kinds;
  }
  ~WithoutAutocast() { autograd::modes.autocast.kinds = before_; }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  std::uint32_t before_;
};

}  // namespace tenon::autocast
