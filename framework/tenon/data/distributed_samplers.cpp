// Distributed samplers.
#include <tenon/data/distributed_samplers.h>

#include <tenon/nn/serialize/archive.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tenon::data::samplers {

ShareSampler::ShareSampler(std::size_t size, std::size_t num_replicas, std::size_t rank, bool allow_duplicates,
                           bool shuffled)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates), shuffled_(shuffled) {
  if (num_replicas == 0 || rank >= num_replicas) {
    throw Error(fmt::format("a distributed sampler's rank must lie below its number of replicas, got rank {} of {}",
                            rank, num_replicas));
  }
  ShareSampler::reset(size);
}

void ShareSampler::reset(std::optional<std::size_t> new_size) {
  size_ = new_size.value_or(size_);
  const std::size_t share = local_sample_count();
  indices_.resize(share * num_replicas_);
  for (std::size_t i = 0; i < indices_.size(); ++i) indices_[i] = i < size_ ? i : (i - size_) % size_;
  if (shuffled_) {
    // Written out, since std::shuffle gives another order with another standard library.
    std::mt19937_64 random(epoch_);
    for (std::size_t i = indices_.size(); i > 1; --i) std::swap(indices_[i - 1], indices_[random() % i]);
  }
  position_ = rank_ * share;
  end_ = position_ + share;
}

std::optional<std::vector<std::size_t>> ShareSampler::next(std::size_t batch_size) {
  if (position_ == end_) return std::nullopt;
  const std::size_t count = std::min(batch_size, end_ - position_);
  const auto first = indices_.begin() + static_cast<std::ptrdiff_t>(position_);
  position_ += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void ShareSampler::save(OutputArchive& archive) const {
  archive.write("index", static_cast<std::int64_t>(position_));
  archive.write("epoch", static_cast<std::int64_t>(epoch_));
}
void ShareSampler::load(InputArchive& archive) {
  epoch_ = static_cast<std::size_t>(archive.read_integer("epoch"));
  reset(size_);
  const std::int64_t position = archive.read_integer("index");
  if (position < static_cast<std::int64_t>(position_) || position > static_cast<std::int64_t>(end_)) {
    throw Error(fmt::format("a sampler's saved position {} lies outside this replica's share [{}, {}]", position,
                            position_, end_));
  }
  position_ = static_cast<std::size_t>(position);
}

}  // namespace tenon::data::samplers
