// PackedSequence: sequences of different lengths, step by step and without padding; what recurrent layers take as it
// is.
#pragma once

#include <tenon/core/export.h>
#include <tenon/ops/nn/recurrent/packing.h>
#include <tenon/tensor/tensor.h>

#include <optional>
#include <tuple>

namespace tenon::nn::utils::rnn {

/// The permutation that undoes one; undefined for undefined.
TENON_API Tensor invert_permutation(const Tensor& permutation);

/// Made by pack_sequence and pack_padded_sequence.
class TENON_API PackedSequence {
 public:
  /// Without unsorted_indices they are the inverse of sorted_indices. Throws Error unless batch_sizes is on the CPU.
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});

  const Tensor& data() const { return data_; }                ///< (sum of lengths, *)
  const Tensor& batch_sizes() const { return batch_sizes_; }  ///< int64 on the CPU: sequences that reach each step
  /// Where each sequence of the batch came from, longest first; undefined where they had to come sorted.
  const Tensor& sorted_indices() const { return sorted_indices_; }
  /// The inverse of sorted_indices(); undefined where those are.
  const Tensor& unsorted_indices() const { return unsorted_indices_; }

  /// As Tensor::pin_memory, for all of its tensors.
  PackedSequence pin_memory(std::optional<Device> device = std::nullopt) const;
  /// Whether the data is in page-locked host memory.
  bool is_pinned() const { return data_.is_pinned(); }
  /// Converts data; indices follow to its device, batch_sizes stay.
  PackedSequence to(TensorOptions options) const;
  /// The same on the current CUDA device.
  PackedSequence cuda() const { return to(TensorOptions(Device(kCUDA))); }
  /// The same on the CPU.
  PackedSequence cpu() const { return to(TensorOptions(Device(kCPU))); }
  /// Whether the data is on a CUDA device.
  bool is_cuda() const { return data_.is_cuda(); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

/// Of padded input (T, B, *), or (B, T, *) with batch_first. With enforce_sorted lengths must fall; otherwise sequences
/// are sorted here and the permutation is remembered.
TENON_API PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first = false,
                                              bool enforce_sorted = true);
/// Padded sequences in the order they came in, and their lengths. Throws Error for a total_length below the longest
/// one.
TENON_API std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                                         double padding_value = 0.0,
                                                         std::optional<std::int64_t> total_length = std::nullopt);
using tenon::pad_sequence;
/// Packs tensors (L, …) of different lengths, which come longest first unless `enforce_sorted` is off. Throws Error for
/// another order, other trailing sizes, or no tensors.
TENON_API PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true);

}  // namespace tenon::nn::utils::rnn
