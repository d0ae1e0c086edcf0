// Sequences of different lengths in one tensor: padded to the longest, or packed step by step without gaps.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// Sequences (L_i, *), each with padding_value up to the longest: (max L, count, *), or (count, max L, *) with
/// batch_first. Throws Error where trailing sizes differ, and for no sequence at all.
TENON_API Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0.0);

/// The steps of padded sequences (T, B, *), or (B, T, *) with batch_first, without their padding: data (sum of lengths,
/// *), in which all of step 0 comes first, then all of step 1 …, and how many sequences reach each step (int64 on the
/// CPU). Throws Error unless there are B lengths of 1 to T, none longer than the one before it.
TENON_API std::tuple<Tensor, Tensor> _pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                                           bool batch_first);
/// The inverse: sequences padded to at least total_length steps, and their lengths (int64 on the CPU). Throws Error for
/// batch_sizes of no step, and on a device without data.
TENON_API std::tuple<Tensor, Tensor> _pad_packed_sequence(const Tensor& data, const Tensor& batch_sizes,
                                                          bool batch_first, const Scalar& padding_value,
                                                          std::int64_t total_length);

}  // namespace tenon
