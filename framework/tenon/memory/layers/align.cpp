// Layer `align`: a larger alignment for the requests above a size, by taking more where the policy need not honour it.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/wider_block.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

class Align final : public LayerAllocator {
 public:
  Align(std::unique_ptr<Allocator> inner, const Options& options)
      : LayerAllocator(std::move(inner)), alignment_(options.size("alignment")), min_bytes_(options.size("min_size")) {}

  Block allocate(const Request& request) override {
    const bool is_meant = request.bytes >= min_bytes_;
    const std::size_t alignment = is_meant ? std::max(request.alignment, alignment_) : request.alignment;
    const Request wider = widened_to_align(request, alignment);
    auto record = std::make_unique<Record>();
    record->inner = inner_->allocate(wider);
    record->inner.request = wider;
    const Block& whole = record->inner;
    return aligned_part(whole, alignment, record.release(), request);
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
