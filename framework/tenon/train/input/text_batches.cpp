// Batches of text that lies on the device. Declared in batches.h.
#include <tenon/train/input/batches.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace tenon::train {
namespace {

class TextBatches final : public Batches {
 public:
  TextBatches(const std::vector<std::int32_t>& symbols, std::int64_t context, std::int64_t limit, Device device)
      : context_(context), device_(device) {
    const auto size = static_cast<std::int64_t>(symbols.size());
    count_ = data::window_count(size, context);
    if (count_ == 0) {
      throw Error(fmt::format(
          "{} symbols of text are less than one window of {} and a target; make model.context smaller", size, context));
    }
    if (limit > 0) count_ = std::min(count_, limit);
    PurposeGuard purpose(Purpose::kData);
    symbols_ = upload(symbols);
    checksum_ = crc32_z(0, reinterpret_cast<const unsigned char*>(symbols.data()), symbols.size() * sizeof symbols[0]);
    offsets_ = tenon::arange(context_, TensorOptions(kInt64)).to(device_).unsqueeze(0);
  }

  std::int64_t size() const override { return count_; }
  std::uint32_t checksum() const override { return static_cast<std::uint32_t>(checksum_); }

  void begin(std::uint64_t seed, bool shuffle) override {
    PurposeGuard purpose(Purpose::kData);
    std::vector<std::int64_t> starts = epoch_order(count_, seed, shuffle);
    for (std::int64_t& start : starts) start *= context_;
    starts_ = tenon::from_blob(starts.data(), {count_}, TensorOptions(kInt64)).clone().to(device_);
  }

  Batch get(std::int64_t first, std::int64_t count) override {
    NoGradGuard no_grad;
    PurposeGuard purpose(Purpose::kData);
    const Tensor where = starts_.narrow(0, first, count).unsqueeze(1).add(offsets_).view({-1});
    const auto gather = [&](const Tensor& at) {
      return symbols_.index_select(0, at).to(kInt64).view({count, context_});
    };
    return {gather(where), gather(where + 1), count * context_};
  }

 private:
  Tensor upload(const std::vector<std::int32_t>& symbols) const {
    const Tensor host = tenon::from_blob(const_cast<std::int32_t*>(symbols.data()),
                                         {static_cast<std::int64_t>(symbols.size())}, TensorOptions(kInt32));
    return device_.is_cpu() ? host.clone() : host.to(device_);
  }

  std::int64_t context_;
  std::int64_t count_ = 0;
  Device device_;
  unsigned long checksum_ = 0;
  Tensor symbols_;  ///< int32
  Tensor offsets_;  ///< (1, context): 0 … context - 1
  Tensor starts_;   ///< of the windows, in the epoch's order
};

}  // namespace

std::unique_ptr<Batches> make_text_batches(const std::vector<std::int32_t>& symbols, std::int64_t context,
                                           std::int64_t limit, Device device) {
  return std::make_unique<TextBatches>(symbols, context, limit, device);
}

}  // namespace tenon::train
