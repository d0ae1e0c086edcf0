// Every so-manieth example of an order that all ranks draw alike.
#include <tenon/data/distributed_sampler.h>

#include <tenon/core/error.h>
#include <tenon/nn/serialize/archive.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace tenon::data::distributed {

DistributedSampler::DistributedSampler(std::size_t size, const DistributedSamplerOptions& options)
    : size_(size), options_(options) {
  if (options_.num_replicas == 0 || options_.rank >= options_.num_replicas)
    throw Error(fmt::format("a distributed sampler's rank must lie below its number of replicas, got rank {} of {}",
                            options_.rank, options_.num_replicas));
  DistributedSampler::reset(size);
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  size_ = new_size.value_or(size_);
  std::vector<std::size_t> order(size_);
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    // Written out, since std::shuffle gives another order with another standard library.
    std::mt19937_64 random(options_.seed + epoch_);
    for (std::size_t i = size_; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  const std::size_t replicas = options_.num_replicas;
  const std::size_t share = options_.drop_last || size_ == 0 ? size_ / replicas : (size_ + replicas - 1) / replicas;
  indices_.clear();
  for (std::size_t i = 0; i < share; ++i) indices_.push_back(order[(i * replicas + options_.rank) % size_]);
  position_ = 0;
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (position_ == indices_.size()) return std::nullopt;
  const std::size_t count = std::min(batch_size, indices_.size() - position_);
  const auto first = indices_.begin() + static_cast<std::ptrdiff_t>(position_);
  position_ += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::save(OutputArchive& archive) const {
  archive.write("index", static_cast<std::int64_t>(position_));
  archive.write("epoch", static_cast<std::int64_t>(epoch_));
}

void DistributedSampler::load(InputArchive& archive) {
  epoch_ = static_cast<std::size_t>(archive.read_integer("epoch"));
  reset();
  const std::int64_t position = archive.read_integer("index");
  if (position < 0 || position > static_cast<std::int64_t>(indices_.size()))
    throw Error(
        fmt::format("a sampler's saved position {} lies outside this rank's {} examples", position, indices_.size()));
  position_ = static_cast<std::size_t>(position);
}

}  // namespace tenon::data::distributed
