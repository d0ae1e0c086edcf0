// DataLoader: batches of a data set, made by the caller or by worker threads that run ahead. With one seed the batches
// are the same ones in the same order whatever the number of workers, since the caller's thread draws every request.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/data/data_loader_options.h>
#include <tenon/data/dataset.h>
#include <tenon/data/detail/worker_pool.h>
#include <tenon/data/iterator.h>
#include <tenon/data/pin_memory.h>
#include <tenon/data/samplers.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace tenon::data {

template <class Dataset, class Batch, class BatchRequest>
class DataLoaderBase {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;

  DataLoaderBase(DataLoaderOptions options, std::unique_ptr<Dataset> main_thread_dataset)
      : options_(options), main_thread_dataset_(std::move(main_thread_dataset)) {
    if (options_.pin_memory) pinned_for_ = pinning_of_batches(options_.pin_memory_device);
  }
  virtual ~DataLoaderBase() { join(); }

  /// Starts an epoch; the iterator of the last one must have reached its end.
  Iterator<Batch> begin() {
    if (pool_ && pool_->in_flight() > 0) {
      throw Error("Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    }
    reset();
    return Iterator<Batch>([this] { return next(); });
  }
  /// The end of every pass.
  Iterator<Batch> end() { return {}; }
  /// Ends the workers. The loader cannot be used afterwards.
  void join() { pool_.reset(); }
  /// The options, with their defaults filled in.
  const FullDataLoaderOptions& options() const noexcept { return options_; }

 protected:
  using Pool = WorkerPool<BatchRequest, std::optional<Batch>>;

  virtual std::optional<BatchRequest> get_batch_request() = 0;
  virtual void reset() {
    if (!pool_) return;
    pool_->drain();
    exhausted_ = false;
    prefetch(options_.max_jobs);
  }

  /// Each worker pins what it made, so that the caller finds it ready.
  void start(typename Pool::Work work) {
    if (!pool_) pool_ = std::make_unique<Pool>(options_.max_jobs, options_.enforce_ordering);
    pool_->add_worker([this, work = std::move(work)](BatchRequest request) {
      std::optional<Batch> batch = work(std::move(request));
      pin(batch);
      return batch;
    });
  }
  std::optional<Batch> next() {
    const scopes::Scope phase(scopes::Phase::kData);
    if (options_.workers == 0) {
      std::optional<BatchRequest> request = get_batch_request();
      if (!request) return std::nullopt;
      std::optional<Batch> batch = main_thread_dataset_->get_batch(std::move(*request));
      pin(batch);
      return batch;
    }
    while (pool_ && pool_->in_flight() > 0) {
      std::optional<Batch> batch = pool_->pop(options_.timeout);
      if (batch) {
        prefetch(1);
        return batch;
      }
    }
    return std::nullopt;
  }

  const FullDataLoaderOptions options_;
  std::unique_ptr<Dataset> main_thread_dataset_;

 private:
  void pin(std::optional<Batch>& batch) const {
    if (pinned_for_) pin_memory(batch, *pinned_for_);
  }
  void prefetch(std::size_t jobs) {
    for (std::size_t i = 0; i < jobs && !exhausted_; ++i) {
      if (std::optional<BatchRequest> request = get_batch_request()) {
        pool_->push(std::move(*request));
      } else {
        exhausted_ = true;
      }
    }
  }

  std::unique_ptr<Pool> pool_;
  bool exhausted_ = false;
  std::optional<Device> pinned_for_;
};

/// Every worker has a copy of the data set; a sampler says what goes into each batch.
template <class Dataset, class Sampler>
class StatelessDataLoader
    : public DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType> {
  using Base = DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType>;

 public:
  using typename Base::BatchRequestType;
  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : Base(options, nullptr), sampler_(std::move(sampler)) {
    for (std::size_t i = 0; i < this->options_.workers; ++i) {
      if constexpr (std::is_copy_constructible_v<Dataset>) {
        auto copy = std::make_shared<Dataset>(dataset);
        this->start([copy](BatchRequestType request) -> std::optional<typename Dataset::BatchType> {
          return copy->get_batch(std::move(request));
        });
      } else {
        throw Error("a data set that cannot be copied needs make_shared_dataset for workers");
      }
    }
    if (this->options_.workers == 0) this->main_thread_dataset_ = std::make_unique<Dataset>(std::move(dataset));
  }
  ~StatelessDataLoader() override { this->join(); }

 private:
  void reset() override {
    sampler_.reset(std::nullopt);
    Base::reset();
  }
  std::optional<BatchRequestType> get_batch_request() override {
    std::optional<BatchRequestType> request = sampler_.next(this->options_.batch_size);
    if (!request || (this->options_.drop_last && request->size() < this->options_.batch_size)) return std::nullopt;
    return request;
  }

  Sampler sampler_;
};

/// One data set that keeps its own position; its get_batch must be safe to call from several workers.
template <class Dataset>
class StatefulDataLoader
    : public DataLoaderBase<Dataset, typename Dataset::BatchType::value_type, typename Dataset::BatchRequestType> {
  using Base = DataLoaderBase<Dataset, typename Dataset::BatchType::value_type, typename Dataset::BatchRequestType>;

 public:
  using typename Base::BatchRequestType;
  StatefulDataLoader(Dataset dataset, DataLoaderOptions options)
      : Base(options, std::make_unique<Dataset>(std::move(dataset))) {
    for (std::size_t i = 0; i < this->options_.workers; ++i) {
      this->start(
          [this](BatchRequestType request) { return this->main_thread_dataset_->get_batch(std::move(request)); });
    }
  }
  ~StatefulDataLoader() override { this->join(); }

 private:
  void reset() override {
    this->main_thread_dataset_->reset();
    Base::reset();
  }
  std::optional<BatchRequestType> get_batch_request() override { return this->options_.batch_size; }
};

template <class Dataset, class Sampler, class = std::enable_if_t<!Dataset::is_stateful>>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, Sampler sampler,
                                                                        DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler), options);
}
/// The sampler is made for the data set's size, which must be known.
template <class Sampler = samplers::RandomSampler, class Dataset,
          class = std::enable_if_t<!Dataset::is_stateful && std::is_constructible_v<Sampler, std::size_t>>>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                                        DataLoaderOptions options = {}) {
  const std::optional<std::size_t> size = dataset.size();
  if (!size) throw Error("Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}
template <class Dataset, class = std::enable_if_t<Dataset::is_stateful>>
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(Dataset dataset, DataLoaderOptions options = {}) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), options);
}

}  // namespace tenon::data
