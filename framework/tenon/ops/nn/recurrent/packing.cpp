// Packing is one index_select, its inverse one index_put: both know their gradients already.
#include <tenon/ops/nn/recurrent/packing.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tenon {

namespace {

std::vector<std::int64_t> values_of(const Tensor& integers) {
  ops::check_has_values("pack_padded_sequence", integers, "how many rows there are");
  const Tensor dense = integers.cpu().to(kInt64).contiguous();
  const auto* first = dense.data_ptr<std::int64_t>();
  return {first, first + dense.numel()};
}

Tensor tensor_of(std::vector<std::int64_t>& values, Device device) {
  NoGradGuard no_grad;
  const Tensor here =
      from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, TensorOptions(kInt64)).clone();
  return here.to(TensorOptions(device));
}

/// Where each packed row lies in (T * B) rows, step by step.
std::vector<std::int64_t> packed_rows(const std::vector<std::int64_t>& batch_sizes, std::int64_t batch) {
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(std::accumulate(batch_sizes.begin(), batch_sizes.end(), std::int64_t{0})));
  for (std::size_t step = 0; step < batch_sizes.size(); ++step) {
    for (std::int64_t b = 0; b < batch_sizes[step]; ++b) rows.push_back(static_cast<std::int64_t>(step) * batch + b);
  }
  return rows;
}

}  // namespace

Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value) {
  TENON_SCOPE(pad_sequence, sequences, batch_first, padding_value)
  if (sequences.empty()) throw Error("pad_sequence: received an empty list of sequences");
  const Tensor& first = sequences[0];
  if (first.dim() == 0) throw Error("pad_sequence: expected sequences of at least one dimension, but got a number");
  std::vector<std::int64_t> trailing = first.sizes().slice(1).vec();
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].dim() != first.dim() || sequences[i].sizes().slice(1) != IntArrayRef(trailing)) {
      throw Error(
          fmt::format("pad_sequence: The size of tensor {} ({}) must match that of tensor 0 ({}) but for the first "
                      "dimension",
                      i, to_string(sequences[i].sizes()), to_string(first.sizes())));
    }
    longest = std::max(longest, sequences[i].size(0));
  }
  std::vector<Tensor> padded;
  padded.reserve(sequences.size());
  for (const Tensor& given : sequences) {
    const Tensor sequence =
        given.to(first.scalar_type());  // PyTorch copies them into a tensor of the first one's dtype
    const std::int64_t missing = longest - sequence.size(0);
    if (missing == 0) {
      padded.push_back(sequence);
      continue;
    }
    std::vector<std::int64_t> sizes = trailing;
    sizes.insert(sizes.begin(), missing);
    padded.push_back(cat({sequence, full(sizes, padding_value, sequence.options())}));
  }
  return stack(padded, batch_first ? 0 : 1);
}

std::tuple<Tensor, Tensor> _pack_padded_sequence(const Tensor& given, const Tensor& given_lengths, bool batch_first) {
  TENON_SCOPE(_pack_padded_sequence, given, given_lengths, batch_first)
  if (given.numel() == 0) throw Error("Cannot pack empty tensors.");
  const Tensor input = batch_first ? given.transpose(0, 1) : given;
  const std::vector<std::int64_t> lengths = values_of(given_lengths);
  const std::int64_t steps = input.size(0);
  const std::int64_t batch = input.size(1);
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw Error(fmt::format("Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={})",
                            lengths.size(), batch));
  }
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    if (lengths[i] > lengths[i - 1]) {
      throw Error(
          "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
          "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
          "not "
          "need ONNX exportability.");
    }
  }
  if (lengths.back() <= 0) {
    throw Error("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  }
  if (lengths.front() > steps) {
    throw Error(
        fmt::format("Expected lengths of at most {}, the steps of the input, but got {}", steps, lengths.front()));
  }
  std::vector<std::int64_t> batch_sizes(static_cast<std::size_t>(lengths.front()));
  for (std::size_t step = 0; step < batch_sizes.size(); ++step) {
    batch_sizes[step] = std::count_if(lengths.begin(), lengths.end(),
                                      [&](std::int64_t length) { return length > static_cast<std::int64_t>(step); });
  }
  std::vector<std::int64_t> rows = packed_rows(batch_sizes, batch);
  const Tensor data = input.flatten(0, 1).index_select(0, tensor_of(rows, input.device()));
  return {data, tensor_of(batch_sizes, kCPU)};
}

std::tuple<Tensor, Tensor> _pad_packed_sequence(const Tensor& data, const Tensor& given_batch_sizes, bool batch_first,
                                                const Scalar& padding_value, std::int64_t total_length) {
  TENON_SCOPE(_pad_packed_sequence, data, given_batch_sizes, batch_first, padding_value, total_length)
  const std::vector<std::int64_t> batch_sizes = values_of(given_batch_sizes);
  if (batch_sizes.empty()) throw Error("pad_packed_sequence: the packed sequence has no steps");
  const std::int64_t batch = batch_sizes.front();
  const std::int64_t steps = std::max(total_length, static_cast<std::int64_t>(batch_sizes.size()));
  std::vector<std::int64_t> sizes = data.sizes().vec();
  sizes[0] = steps * batch;
  std::vector<std::int64_t> rows = packed_rows(batch_sizes, batch);
  const Tensor blank = full(sizes, padding_value, data.options());
  const Tensor padded = blank.index_put_(std::vector<std::optional<Tensor>>{tensor_of(rows, data.device())}, data)
                            .unflatten(0, {steps, batch});
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), 0);
  for (const std::int64_t reached : batch_sizes) {
    for (std::int64_t b = 0; b < reached; ++b) ++lengths[static_cast<std::size_t>(b)];
  }
  return {batch_first ? padded.transpose(0, 1) : padded, tensor_of(lengths, kCPU)};
}

}  // namespace tenon
