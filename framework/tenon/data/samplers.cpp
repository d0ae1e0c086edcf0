// Samplers.
#include <tenon/data/samplers.h>

#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace tenon::data::samplers {

namespace {

std::size_t saved_position(InputArchive& archive, const char* key) {
  const std::int64_t position = archive.read_integer(key);
  if (position < 0) throw Error("a sampler's saved position is " + std::to_string(position) + ", below 0");
  return static_cast<std::size_t>(position);
}

}  // namespace

CustomBatchRequest::~CustomBatchRequest() = default;

void SequentialSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) size_ = *new_size;
  index_ = 0;
}
std::optional<std::vector<std::size_t>> SequentialSampler::next(std::size_t batch_size) {
  const std::size_t left = index_ < size_ ? size_ - index_ : 0;
  if (left == 0) return std::nullopt;
  std::vector<std::size_t> indices(std::min(batch_size, left));
  std::iota(indices.begin(), indices.end(), index_);
  index_ += indices.size();
  return indices;
}
void SequentialSampler::save(OutputArchive& archive) const {
  archive.write("index", static_cast<std::int64_t>(index_));
}
void SequentialSampler::load(InputArchive& archive) { index_ = saved_position(archive, "index"); }

RandomSampler::RandomSampler(std::int64_t size, Dtype index_dtype)
    : indices_(tenon::randperm(size, TensorOptions(index_dtype))) {}
void RandomSampler::reset(std::optional<std::size_t> new_size) {
  const std::int64_t size = new_size ? static_cast<std::int64_t>(*new_size) : indices_.numel();
  indices_ = tenon::randperm(size, indices_.options());
  index_ = 0;
}
std::optional<std::vector<std::size_t>> RandomSampler::next(std::size_t batch_size) {
  const std::int64_t left = indices_.numel() - index_;
  if (left == 0) return std::nullopt;
  const std::int64_t count = std::min(static_cast<std::int64_t>(batch_size), left);
  const Tensor piece = indices_.narrow(0, index_, count).to(kInt64);
  index_ += count;
  const std::int64_t* values = piece.data_ptr<std::int64_t>();
  return std::vector<std::size_t>(values, values + count);
}
void RandomSampler::save(OutputArchive& archive) const {
  archive.write("index", index_);
  archive.write("indices", indices_, /*is_buffer=*/true);
}
void RandomSampler::load(InputArchive& archive) {
  index_ = archive.read_integer("index");
  archive.read("indices", indices_, /*is_buffer=*/true);
  if (index_ < 0 || index_ > indices_.numel()) throw Error("a sampler's position lies outside its indices");
}

void StreamSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) epoch_size_ = *new_size;
  examples_retrieved_so_far_ = 0;
}
std::optional<BatchSize> StreamSampler::next(std::size_t batch_size) {
  if (examples_retrieved_so_far_ >= epoch_size_) return std::nullopt;
  const std::size_t count = std::min(batch_size, epoch_size_ - examples_retrieved_so_far_);
  examples_retrieved_so_far_ += count;
  return BatchSize(count);
}
void StreamSampler::save(OutputArchive& archive) const {
  archive.write("examples_retrieved_so_far", static_cast<std::int64_t>(examples_retrieved_so_far_));
}
void StreamSampler::load(InputArchive& archive) {
  examples_retrieved_so_far_ = saved_position(archive, "examples_retrieved_so_far");
}

}  // namespace tenon::data::samplers
