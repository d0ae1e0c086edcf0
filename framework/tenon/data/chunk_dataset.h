// ChunkDataset: a data set that is read in chunks (files, shards) by threads of its own. One sampler orders the chunks,
// another the examples of what was loaded together (Zinkevich et al., "Parallelized stochastic gradient descent",
// 2010).
#pragma once

#include <tenon/data/dataset.h>
#include <tenon/data/detail/batch_buffer.h>
#include <tenon/data/samplers.h>
#include <tenon/nn/options/arg.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::data::datasets {

/// Reads whole chunks; read_chunk is called from several threads at once.
template <class Example, class Chunk = std::vector<Example>>
class ChunkDataReader {
 public:
  using ExampleType = Example;
  using ChunkType = Chunk;
  using BatchType = Chunk;
  virtual ~ChunkDataReader() = default;
  /// The examples of one chunk. Called by several threads at once, each for another chunk.
  virtual Chunk read_chunk(std::size_t chunk_index) = 0;
  /// The number of chunks.
  virtual std::size_t chunk_count() = 0;
  /// Called before each epoch.
  virtual void reset() = 0;
};

struct ChunkDatasetOptions {
  /// Throws Error for a zero, or a cache that does not hold one batch.
  ChunkDatasetOptions(std::size_t preloader_count, std::size_t batch_size, std::size_t cache_size = 2048,
                      std::size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    if (preloader_count == 0) {
      throw Error("Preloader count is 0. At least one preloader needs to be specified.");
    }
    if (batch_size == 0) throw Error("Batch size is 0. A positive batch size needs to be specified.");
    if (cache_size == 0) throw Error("Cache size is 0. A positive cache size needs to be specified.");
    if (cache_size < batch_size) {
      throw Error("Cache size is less than batch size. Cache needs to be large enough to hold at least one batch.");
    }
    if (cross_chunk_shuffle_count == 0) throw Error("cross_chunk_shuffle_count needs to be greater than 0.");
  }
  TENON_ARG(std::size_t, preloader_count);            ///< reading threads
  TENON_ARG(std::size_t, batch_size);                 ///< how many examples make a batch
  TENON_ARG(std::size_t, cache_size);                 ///< examples kept ahead
  TENON_ARG(std::size_t, cross_chunk_shuffle_count);  ///< chunks that are loaded and ordered together
};

template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                                                  typename ChunkReader::BatchType, std::size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = std::size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;
  using Policy = std::function<void(UnwrappedBatchType&)>;

  /// The policy is applied to what was loaded together, before its examples are ordered.
  ChunkDataset(ChunkReader reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options, Policy preprocessing_policy = {})
      : reader_(std::move(reader)),
        example_sampler_(std::move(example_sampler)),
        options_(std::move(options)),
        policy_(std::move(preprocessing_policy)),
        chunk_sampler_(std::move(chunk_sampler)) {}
  ~ChunkDataset() override { stop(); }
  ChunkDataset(const ChunkDataset&) = delete;
  ChunkDataset& operator=(const ChunkDataset&) = delete;

  BatchType get_batch(std::size_t batch_size) override {
    if (!buffer_) throw Error("Dataset needs to call reset() before calling get_batch().");
    if (batch_size != options_.batch_size()) {
      throw Error(
          "The requested batch size does not match with the initialized batch size.\n The requested batch size is " +
          std::to_string(batch_size) + ", while the dataset is created with batch size equal to " +
          std::to_string(options_.batch_size()));
    }
    return buffer_->get_batch();
  }
  /// The next batch, the last one smaller; nothing behind it. Throws Error before the first reset(), and as
  /// WorkerException what reading threw.
  BatchType get_batch() { return get_batch(options_.batch_size()); }

  /// Begins an epoch, or goes on from a position that was loaded.
  void reset() override {
    stop();
    if (!resumes_) {
      reader_.reset();
      chunk_sampler_.reset(reader_.chunk_count());
    }
    resumes_ = false;
    stopping_ = false;
    buffer_ = std::make_unique<Buffer>(options_.batch_size(), example_sampler_, options_.cache_size());
    running_ = options_.preloader_count();
    for (std::size_t i = 0; i < options_.preloader_count(); ++i) threads_.start([this] { preload(); });
  }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  /// What chooses the order of chunks.
  ChunkSampler& chunk_sampler() { return chunk_sampler_; }

  /// The position is the chunk sampler's: examples that were loaded and not handed out yet count as seen.
  void save(OutputArchive& archive) const override {
    const std::lock_guard lock(sampler_mutex_);
    chunk_sampler_.save(archive);
  }
  void load(InputArchive& archive) override {
    const std::lock_guard lock(sampler_mutex_);
    chunk_sampler_.reset(reader_.chunk_count());  // a position alone does not say how many chunks there are
    chunk_sampler_.load(archive);
    resumes_ = true;
  }

 private:
  using Buffer = BatchBuffer<UnwrappedBatchType, ExampleSampler>;

  std::optional<std::vector<std::size_t>> next_chunks() {
    const std::lock_guard lock(sampler_mutex_);
    auto chunks = chunk_sampler_.next(options_.cross_chunk_shuffle_count());
    if (!chunks) return std::nullopt;
    return std::vector<std::size_t>(chunks->begin(), chunks->end());
  }
  void preload() {
    while (!stopping_) {
      std::optional<std::vector<std::size_t>> chunks;
      std::exception_ptr error;
      try {
        chunks = next_chunks();
        if (!chunks) break;
        UnwrappedBatchType data;
        for (const std::size_t chunk : *chunks) {
          auto piece = reader_.read_chunk(chunk);
          if (data.empty()) {
            data = std::move(piece);
          } else {
            for (auto& example : piece) data.push_back(std::move(example));
          }
        }
        if (policy_) policy_(data);
        if (!data.empty()) buffer_->add_chunk(std::move(data));
      } catch (...) {
        error = std::current_exception();
      }
      if (!error) continue;
      // Here and not in the handler, which would keep a hold of what the other thread then reads and lets go of.
      buffer_->add_error(std::move(error));
      if (!chunks) break;  // without a sampler there is nothing to go on with
    }
    if (--running_ == 0) buffer_->close();
  }
  void stop() {
    stopping_ = true;
    if (buffer_) buffer_->close();
    threads_.join();
  }

  ChunkReader reader_;
  ExampleSampler example_sampler_;
  const ChunkDatasetOptions options_;
  const Policy policy_;
  std::unique_ptr<Buffer> buffer_;
  tenon::data::detail::Threads threads_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> running_{0};

  mutable std::mutex sampler_mutex_;
  ChunkSampler chunk_sampler_;
  bool resumes_ = false;  ///< the caller's
};

}  // namespace tenon::data::datasets
