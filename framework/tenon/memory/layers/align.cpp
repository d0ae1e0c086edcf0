// Layer `align`: a larger alignment for the requests above a size, by taking more where the policy need not honour it.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tenon {

namespace {

class Align final : public LayerAllocator {
 public:
  Align(std::unique_ptr<Allocator> inner, const Options& options)
      : LayerAllocator(std::move(inner)), alignment_(options.size("alignment")), min_bytes_(options.size("min_size")) {}

  Block allocate(const Request& request) override {
    Request wider = request;
    if (request.bytes >= min_bytes_) wider.alignment = std::max(request.alignment, alignment_);
    const std::size_t wanted = wider.alignment;
    wider.alignment = std::min(wanted, kMaxAlignment);
    if (wanted > kMaxAlignment) wider.bytes += wanted - kMaxAlignment;
    auto record = std::make_unique<Record>();
    record->inner = inner_->allocate(wider);
    record->inner.request = wider;
    const auto base = reinterpret_cast<std::uintptr_t>(record->inner.data);
    const std::uintptr_t aligned = align_up(base, wanted);
    return {.data = reinterpret_cast<void*>(aligned),
            .bytes = record->inner.bytes - (aligned - base),
            .cookie = record.release(),
            .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const std::unique_ptr<Record> record(static_cast<Record*>(block.cookie));
    inner_->deallocate(record->inner, last_use);
  }

  void record_use(const Block& block, StreamRef stream) override {
    inner_->record_use(static_cast<Record*>(block.cookie)->inner, stream);
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  struct Record {
    Block inner;
  };

  const std::size_t alignment_;
  const std::size_t min_bytes_;
};

}  // namespace

LayerInfo align_layer() {
  return {
      .name = "align",
      .summary = "gives larger alignments, by taking more",
      .options = {OptionSpec::size("alignment", 4 * KiB, "a power of two").range(std::size_t{1}, GiB),
                  OptionSpec::size("min_size", 0, "only for requests of at least this many bytes")},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        if (const std::size_t alignment = context.options.size("alignment"); !is_power_of_two(alignment)) {
          throw ConfigError(fmt::format("layer 'align': alignment = {} is not a power of two", alignment));
        }
        return std::make_unique<Align>(std::move(inner), context.options);
      }};
}

}  // namespace tenon
