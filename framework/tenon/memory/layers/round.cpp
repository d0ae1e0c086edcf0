// Layer `round`: sizes rounded up before the policy sees them, so that requests of nearly the same size share blocks
// under any policy. `divisions` is PyTorch's roundup_power2_divisions.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace tenon {

namespace {

class Round final : public LayerAllocator {
 public:
  Round(std::unique_ptr<Allocator> inner, const Options& options)
      : LayerAllocator(std::move(inner)),
        multiple_(options.size("multiple")),
        divisions_(static_cast<std::size_t>(options.integer("divisions"))),
        min_bytes_(options.size("min_size")) {}

  Block allocate(const Request& request) override {
    Block block = inner_->allocate(rounded(request));
    block.request = request;
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    inner_->deallocate(inner_of(block), last_use);
  }
  void record_use(const Block& block, StreamRef stream) override { inner_->record_use(inner_of(block), stream); }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  Request rounded(Request request) const noexcept {
    request.bytes = rounded(request.bytes);
    return request;
  }
  /// The same for the block's allocation and its free, so nothing has to be kept.
  Block inner_of(Block block) const noexcept {
    block.request = rounded(block.request);
    return block;
  }

  std::size_t rounded(std::size_t bytes) const noexcept {
    if (bytes < min_bytes_) return bytes;
    const std::size_t power = std::bit_floor(bytes);
    const std::size_t step = divisions_ == 0 ? 0 : power / divisions_;
    return up_to(up_to(bytes, step), multiple_);
  }
  /// What cannot be rounded in a size_t is left to the policy to refuse.
  static std::size_t up_to(std::size_t bytes, std::size_t step) noexcept {
    const std::size_t over = step == 0 ? 0 : bytes % step;
    if (over == 0 || bytes > std::numeric_limits<std::size_t>::max() - (step - over)) return bytes;
    return bytes + (step - over);
  }

  const std::size_t multiple_;
  const std::size_t divisions_;
  const std::size_t min_bytes_;
};

}  // namespace

LayerInfo round_layer() {
  return {
      .name = "round",
      .summary = "rounds sizes up, so that requests of nearly the same size share blocks",
      .options = {OptionSpec::size("multiple", 0, "to a multiple of this; 0 = no"),
                  OptionSpec::integer("divisions", 0, "to one of so many sizes between two powers of two; 0 = no")
                      .range(0, 1 << 20),
                  OptionSpec::size("min_size", 0, "only requests of at least this many bytes")},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        const std::int64_t divisions = context.options.integer("divisions");
        if (divisions != 0 && !is_power_of_two(static_cast<std::size_t>(divisions)))
          throw ConfigError(fmt::format("layer 'round': divisions = {} is not a power of two", divisions));
        return std::make_unique<Round>(std::move(inner), context.options);
      }};
}

}  // namespace tenon
