// Batches of a data set that lies on the device as a whole: nothing is read or copied from the host while training.
#pragma once

#include <tenon/data/image_set.h>
#include <tenon/tensor/tensor.h>
#include <tenon/train/model.h>

#include <cstdint>
#include <memory>

namespace tenon::train {

struct Batch {
  Tensor input;
  Tensor target;  ///< int64
};

/// One split of a data set.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t size() const = 0;
  /// Starts an epoch: examples in an order that depends on `seed` alone, or in the files' order.
  virtual void begin(std::uint64_t seed, bool shuffle) = 0;
  /// Examples [first, first + count) of the epoch's order.
  virtual Batch get(std::int64_t first, std::int64_t count) = 0;
};

/// Pictures as bytes on the device; a batch is gathered, scaled to mean 0 and deviation 1 of the training set, and,
/// where image_size asks for it, enlarged.
std::unique_ptr<Batches> make_image_batches(const data::ImageSet& set, std::int64_t limit, std::int64_t image_size,
                                            Dtype dtype, Device device);

/// The order of an epoch: 0 … count - 1 shuffled by a generator of our own, the same on every machine.
TENON_API std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, bool shuffle);

}  // namespace tenon::train
