// Batches of a text with symbols masked. Declared in batches.h.
#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/input/split_mix.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::train {
namespace {

constexpr double kTargets = 0.15;                 // of a window's symbols
constexpr double kMasked = 0.8, kReplaced = 0.1;  // of the targets
constexpr std::int64_t kNoAnswer = -100;

/// What becomes of a symbol, a byte each.
constexpr std::uint8_t kContext = 0, kMask = 1, kReplace = 2, kKeep = 3;

class MaskedBatches final : public Batches {
 public:
  MaskedBatches(std::unique_ptr<Batches> text, std::int64_t context, std::int64_t mask_symbol, Device device)
      : text_(std::move(text)),
        context_(context),
        targets_(std::max<std::int64_t>(1, std::llround(kTargets * static_cast<double>(context)))),
        mask_symbol_(mask_symbol),
        device_(device) {}

  std::int64_t size() const override { return text_->size(); }
  std::uint32_t checksum() const override { return text_->checksum(); }

  void begin(std::uint64_t seed, bool shuffle) override {
    text_->begin(seed, shuffle);
    PurposeGuard purpose(Purpose::kData);
    std::vector<std::uint8_t> kinds = draw_kinds(seed);
    const Tensor host = tenon::from_blob(kinds.data(), {size(), context_}, TensorOptions(kUInt8));
    kinds_ = device_.is_cpu() ? host.clone() : host.to(device_);
  }

  Batch get(std::int64_t first, std::int64_t count) override {
    NoGradGuard no_grad;
    PurposeGuard purpose(Purpose::kData);
    const Tensor symbols = text_->get(first, count).input, kinds = kinds_.narrow(0, first, count);
    // Half the vocabulary away: no symbol replaces itself, as long as there are two.
    const Tensor others = symbols.add(std::max<std::int64_t>(1, mask_symbol_ / 2)).remainder(mask_symbol_);
    const Tensor input = tenon::where(kinds.eq(std::int64_t{kReplace}), others, symbols)
                             .masked_fill(kinds.eq(std::int64_t{kMask}), mask_symbol_);
    return {input, symbols.masked_fill(kinds.eq(std::int64_t{kContext}), kNoAnswer), count * targets_};
  }

 private:
  std::vector<std::uint8_t> draw_kinds(std::uint64_t seed) const {
    std::vector<std::uint8_t> kinds(static_cast<std::size_t>(size() * context_), kContext);
    std::vector<std::int64_t> places(static_cast<std::size_t>(context_));
    std::iota(places.begin(), places.end(), 0);
    SplitMix random(seed);
    for (std::int64_t window = 0; window < size(); ++window) {
      for (std::int64_t i = 0; i < targets_; ++i) {  // the first steps of a shuffle
        const auto left = static_cast<std::uint64_t>(context_ - i);
        std::swap(places[static_cast<std::size_t>(i)],
                  places[static_cast<std::size_t>(i) + static_cast<std::size_t>(random.next() % left)]);
        const double which = random.uniform();
        const std::uint8_t kind = which < kMasked ? kMask : which < kMasked + kReplaced ? kReplace : kKeep;
        kinds[static_cast<std::size_t>(window * context_ + places[static_cast<std::size_t>(i)])] = kind;
      }
    }
    return kinds;
  }

  std::unique_ptr<Batches> text_;
  std::int64_t context_;
  std::int64_t targets_;  ///< in each window
  std::int64_t mask_symbol_;
  Device device_;
  Tensor kinds_;  ///< (windows, context), in the epoch's order
};

}  // namespace

std::unique_ptr<Batches> make_masked_batches(std::unique_ptr<Batches> text, std::int64_t context,
                                             std::int64_t mask_symbol, Device device) {
  return std::make_unique<MaskedBatches>(std::move(text), context, mask_symbol, device);
}

}  // namespace tenon::train
