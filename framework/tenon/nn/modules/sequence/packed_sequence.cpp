// Packing with sorting around it.
#include <tenon/nn/modules/sequence/packed_sequence.h>

#include <tenon/ops/ops.h>

#include <fmt/format.h>

namespace tenon::nn::utils::rnn {

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  const Tensor places = arange(permutation.numel(), permutation.options());
  return empty_like(permutation).scatter_(0, permutation, places);
}

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  if (!unsorted_indices_.defined()) unsorted_indices_ = invert_permutation(sorted_indices_);
  if (!batch_sizes_.is_cpu()) {
    throw Error(
        "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
        "should "
        "be instantiated by functions like pack_sequence and pack_padded_sequence in nn::utils::rnn.");
  }
}

PackedSequence PackedSequence::pin_memory(std::optional<Device> device) const {
  return PackedSequence(data_.pin_memory(device), batch_sizes_,
                        sorted_indices_.defined() ? sorted_indices_.pin_memory(device) : Tensor(),
                        unsorted_indices_.defined() ? unsorted_indices_.pin_memory(device) : Tensor());
}

PackedSequence PackedSequence::to(TensorOptions options) const {
  Tensor data = data_.to(options);
  if (data.is_same(data_)) return *this;
  const auto follow = [&](const Tensor& indices) {
    return indices.defined() ? indices.to(TensorOptions(data.device())) : Tensor();
  };
  return PackedSequence(data, batch_sizes_, follow(sorted_indices_), follow(unsorted_indices_));
}

PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first, bool enforce_sorted) {
  lengths = lengths.to(kInt64);
  Tensor sorted_indices;
  if (!enforce_sorted) {
    std::tie(lengths, sorted_indices) = lengths.sort(-1, /*descending=*/true);
    sorted_indices = sorted_indices.to(TensorOptions(input.device()));
    input = input.index_select(batch_first ? 0 : 1, sorted_indices);
  }
  auto [data, batch_sizes] = _pack_padded_sequence(input, lengths, batch_first);
  return PackedSequence(data, batch_sizes, sorted_indices, {});
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                               std::optional<std::int64_t> total_length) {
  const std::int64_t longest = sequence.batch_sizes().size(0);
  if (total_length && *total_length < longest) {
    throw Error(
        fmt::format("Expected total_length to be at least the length of the longest sequence in input, but got "
                    "total_length={} and max sequence length being {}",
                    *total_length, longest));
  }
  auto [padded, lengths] = _pad_packed_sequence(sequence.data(), sequence.batch_sizes(), batch_first, padding_value,
                                                total_length.value_or(longest));
  const Tensor& order = sequence.unsorted_indices();
  if (!order.defined()) return {padded, lengths};
  return {padded.index_select(batch_first ? 0 : 1, order), lengths.index_select(0, order.cpu())};
}

PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted) {
  std::vector<std::int64_t> lengths;
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths), /*batch_first=*/false, enforce_sorted);
}

}  // namespace tenon::nn::utils::rnn
