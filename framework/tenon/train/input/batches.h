// Batches of a data set that lies on the device as a whole: nothing is read or copied from the host while training.
#pragma once

#include <tenon/data/image_set.h>
#include <tenon/data/text.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/tensor/tensor.h>
#include <tenon/train/model.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::train {

struct Batch {
  Tensor input;
  Tensor target;             ///< int64
  std::int64_t answers = 0;  ///< of the targets, those that are not -100
};

/// One split of a data set.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t size() const = 0;
  /// CRC-32 of the examples, as they lie in the files: ranks of one run have the same.
  virtual std::uint32_t checksum() const = 0;
  /// Starts an epoch: examples in an order that depends on `seed` alone, or in the files' order.
  virtual void begin(std::uint64_t seed, bool shuffle) = 0;
  /// Examples [first, first + count) of the epoch's order.
  virtual Batch get(std::int64_t first, std::int64_t count) = 0;
};

struct ImageBatchOptions {
  std::int64_t limit = 0;       ///< pictures that are used; 0 = all
  std::int64_t image_size = 0;  ///< enlarged to this side; 0 = as they are
  std::int64_t channels = 1;    ///< as often the grey values stand in a picture
  bool label_pixels = false;    ///< targets (N, H, W): a pixel's class is its picture's, or `classes` where it is black
  Dtype dtype = kFloat32;
  Device device{kCPU, 0};
};
/// Pictures as bytes on the device; a batch (N, channels, H, W) is gathered, scaled to mean 0 and deviation 1 of the
/// training set, and, where image_size asks for it, enlarged. Targets (N).
std::unique_ptr<Batches> make_image_batches(const data::ImageSet& set, const ImageBatchOptions& options);

/// Windows of `context` symbols that do not overlap, gathered on the device; inputs and targets (N, context).
/// `limit` windows are used; 0 = all. Throws Error where the text is shorter than one.
std::unique_ptr<Batches> make_text_batches(const std::vector<std::int32_t>& symbols, std::int64_t context,
                                           std::int64_t limit, Device device);

/// The windows of `text` with some of their symbols to be told from the others (Devlin et al., 2018): of each window 15
/// % are targets, all other targets are -100. Of those, 80 % are replaced by `mask_symbol` in the input, 10 % by
/// another symbol below it, and 10 % stay. Which ones depends on an epoch's seed alone.
std::unique_ptr<Batches> make_masked_batches(std::unique_ptr<Batches> text, std::int64_t context,
                                             std::int64_t mask_symbol, Device device);

/// Both parts of the data that [data] and [model] name, on the experiment's device, in the form that the model's task
/// needs.
struct TrainingData {
  std::unique_ptr<Batches> train, test;
  DataShape shape;
};
/// Throws ConfigError where the data do not suit the model, Error for files that are missing. Reads none.
void check_data(const ExperimentConfig& config);
/// Throws ConfigError where the data do not suit the model, Error for the files.
TrainingData open_data(const ExperimentConfig& config, Dtype dtype);

/// The order of an epoch: 0 … count - 1 shuffled by a generator of our own, the same on every machine.
TENON_API std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, bool shuffle);

}  // namespace tenon::train
