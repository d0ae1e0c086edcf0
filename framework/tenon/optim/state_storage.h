// Where, and in which format, an optimiser's states live between steps. An update takes them as they are made, on the
// parameter's device: they are brought for it, one parameter's at a time, and taken back.
//
//   between steps                       for the update of a parameter
//   8 bits by blocks, on the device  -> unpacked beside them, packed into them again
//   host memory                      -> copied to the device, copied back into the same memory
//   8 bits in host memory            -> both, so that only bytes cross
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::optim {

class OptimizerParamState;

/// A tensor of a parameter's state, of the parameter's size.
struct StateTensor {
  Tensor* tensor = nullptr;
  bool is_signed = true;  ///< false: never below zero
};

/// How states are kept.
struct StateStorageOptions {
  /// In 8 bits by blocks of 256 values (tenon::quantized::pack_blocks), as bitsandbytes does: about a quarter of
  /// float32.
  bool in_8_bits = false;
  /// In host memory, page-locked where the device has such; what is on the host anyway stays.
  bool on_host = false;
  /// Parameters with fewer values keep theirs as they are, as in bitsandbytes: they weigh little, and are often those
  /// that are sensitive (biases, normalisation).
  std::int64_t smallest_in_8_bits = 4096;
};

/// A state that was read becomes like the parameter, in dtype and strides: a step goes through both at once. Throws
/// Error unless its tensors have the parameter's sizes; packed ones stay as they are.
TENON_API void fit_state(OptimizerParamState& state, const Tensor& parameter);

class TENON_EXPORT StateStorage {
 public:
  StateStorage() = default;
  explicit StateStorage(const StateStorageOptions& options) : options_(options) {}

  /// How states are kept.
  const StateStorageOptions& options() const { return options_; }
  /// States stay as they are.
  bool is_plain() const { return !options_.in_8_bits && !options_.on_host; }
  /// Whether those of this parameter are in 8 bits.
  TENON_API bool packs(const Tensor& parameter) const;

  /// What is kept, as kernels take it: of the parameter's sizes and dtype, on its device. The same tensor where it is
  /// kept so.
  TENON_API Tensor bring(const Tensor& kept, const StateTensor& slot, const Tensor& parameter) const;
  /// What of `values` is to be kept, in the memory of `former` where that is kept already.
  TENON_API Tensor keep(const Tensor& values, const StateTensor& slot, const Tensor& former,
                        const Tensor& parameter) const;
  /// A state that was kept in any way is kept in this one; bytes stay the bytes that they are.
  TENON_API void settle(OptimizerParamState& state, const Tensor& parameter) const;
  /// Returns when copies from that device to host memory have ended.
  TENON_API void finish_copies(Device device) const;

 private:
  Tensor place(const Tensor& tensor, const Tensor& former, const Tensor& parameter) const;

  StateStorageOptions options_;
};

/// A parameter's state while it is updated. Without put_back() the state is what it was before.
class BroughtState {
 public:
  /// Brings what `slot` holds, which may be nothing yet.
  BroughtState(const StateStorage& storage, std::unique_ptr<OptimizerParamState>& slot, const Tensor& parameter);
  ~BroughtState();
  BroughtState(const BroughtState&) = delete;
  BroughtState& operator=(const BroughtState&) = delete;
  /// Keeps the state that the slot has now.
  void put_back();

 private:
  const StateStorage& storage_;
  std::unique_ptr<OptimizerParamState>& slot_;
  const Tensor& parameter_;
  std::vector<Tensor> kept_;  ///< as it was, one for each tensor of the state
  bool is_back_ = false;
};

}  // namespace tenon::optim
