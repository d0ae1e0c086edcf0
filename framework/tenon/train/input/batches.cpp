// Batches of pictures that lie on the device.
#include <tenon/train/input/batches.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/input/split_mix.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::train {
namespace {

// Mean and deviation of Fashion-MNIST's training pixels, in [0, 1].
constexpr double kMean = 0.2860;
constexpr double kDeviation = 0.3530;

class ImageBatches final : public Batches {
 public:
  ImageBatches(const data::ImageSet& set, const ImageBatchOptions& options)
      : count_(options.limit > 0 ? std::min(options.limit, set.count) : set.count),
        channels_(options.channels),
        classes_(set.classes),
        label_pixels_(options.label_pixels),
        dtype_(options.dtype),
        device_(options.device) {
    const std::int64_t side = options.image_size;
    if (side > 0) {
      if (side < set.height || side < set.width) {
        throw Error("model.image_size is smaller than the pictures: " + std::to_string(side));
      }
      enlarged_ = nearest(side, set.width);
      enlarged_rows_ = nearest(side, set.height);
    }
    PurposeGuard purpose(Purpose::kData);
    pixels_ = upload(set.pixels.data(), {count_, 1, set.height, set.width});
    labels_ = upload(set.labels.data(), {count_}).to(kInt64);
    const auto add = [&](const std::vector<std::uint8_t>& bytes, std::int64_t count) {
      checksum_ = crc32_z(checksum_, bytes.data(), std::min(bytes.size(), static_cast<std::size_t>(count)));
    };
    add(set.pixels, pixels_.numel());
    add(set.labels, count_);
  }

  std::int64_t size() const override { return count_; }
  std::uint32_t checksum() const override { return static_cast<std::uint32_t>(checksum_); }

  void begin(std::uint64_t seed, bool shuffle) override {
    PurposeGuard purpose(Purpose::kData);
    const std::vector<std::int64_t> order = epoch_order(count_, seed, shuffle);
    order_ =
        tenon::from_blob(const_cast<std::int64_t*>(order.data()), {count_}, TensorOptions(kInt64)).clone().to(device_);
  }

  Batch get(std::int64_t first, std::int64_t count) override {
    NoGradGuard no_grad;
    PurposeGuard purpose(Purpose::kData);
    const Tensor which = order_.narrow(0, first, count);
    Tensor pixels = pixels_.index_select(0, which);
    if (enlarged_.defined()) pixels = pixels.index_select(2, enlarged_rows_).index_select(3, enlarged_);
    Tensor target = labels_.index_select(0, which);
    if (label_pixels_)
      target =
          target.view({-1, 1, 1}).expand(pixels.select(1, 0).sizes()).masked_fill(pixels.select(1, 0).eq(0), classes_);
    Tensor input = pixels.to(dtype_);
    input.mul_(1 / (255 * kDeviation)).sub_(kMean / kDeviation);
    if (channels_ > 1) input = input.expand({count, channels_, input.size(2), input.size(3)}).contiguous();
    return {input, target, target.numel()};
  }

 private:
  Tensor upload(const std::uint8_t* bytes, IntArrayRef sizes) const {
    const Tensor host = tenon::from_blob(const_cast<std::uint8_t*>(bytes), sizes, TensorOptions(kUInt8));
    return device_.is_cpu() ? host.clone() : host.to(device_);
  }
  /// Which source pixel each target pixel shows.
  Tensor nearest(std::int64_t target, std::int64_t source) const {
    PurposeGuard purpose(Purpose::kData);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < target; ++i) positions.push_back(i * source / target);
    return tenon::tensor(positions, TensorOptions(kInt64)).to(device_);
  }

  std::int64_t count_;
  std::int64_t channels_;
  std::int64_t classes_;
  bool label_pixels_;
  Dtype dtype_;
  Device device_;
  unsigned long checksum_ = 0;
  Tensor pixels_;  ///< (count, 1, height, width), bytes
  Tensor labels_;
  Tensor order_;
  Tensor enlarged_, enlarged_rows_;
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, bool shuffle) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) return order;
  SplitMix random(seed);
  for (std::int64_t i = count - 1; i > 0; --i) {
    const auto j = static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(i + 1));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

std::unique_ptr<Batches> make_image_batches(const data::ImageSet& set, const ImageBatchOptions& options) {
  return std::make_unique<ImageBatches>(set, options);
}

}  // namespace tenon::train
