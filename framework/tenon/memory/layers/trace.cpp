// Layer `trace`: writes what passes as a text trace, which `tenon replay` reads.
#include <tenon/core/error.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/history/open_failure.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/observed_source.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <unordered_map>

namespace tenon {

namespace {

class Trace final : public LayerAllocator {
 public:
  Trace(std::unique_ptr<Allocator> inner, const LayerContext& context)
      : LayerAllocator(std::move(inner)), observed_(context.observed), path_(context.options.text("file")) {
    // "T": no compression; the file is plain text then.
    file_ = gzopen(path_.c_str(), path_.ends_with(".gz") ? "wb6" : "wbT");
    if (file_ == nullptr) {
      throw Error(fmt::format("layer 'trace' cannot write '{}': {}; set option 'file' to a path in an existing folder",
                              path_, std::strerror(errno)));
    }
    gzbuffer(file_, 1 << 17);
    write(fmt::format("# tenon memory trace of {}\n# a ID SIZE STREAM | f ID | u ID STREAM | e | m NAME\n",
                      context.traits.device));
  }

  ~Trace() override {
    settle();
    if (file_ != nullptr) gzclose(file_);
  }

  Block allocate(const Request& request) override {
    try {
      const Block block = inner_->allocate(request);
      open_failure_.asked_again(request.bytes, request.stream.id);
      settle();
      const std::uint64_t id = next_id_++;
      live_[block.data] = id;
      write(lines_of_.allocate(id, request.bytes, request.stream.id));
      return block;
    } catch (const OutOfMemory&) {
      fail(request);
      throw;
    }
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (const auto found = live_.find(block.data); found != live_.end()) {
      settle();
      if (!(last_use == block.request.stream)) write(lines_of_.use(found->second, last_use.id));
      write(lines_of_.free(found->second));
      live_.erase(found);
    }
    inner_->deallocate(block, last_use);
  }

  void record_use(const Block& block, StreamRef stream) override {
    if (const auto found = live_.find(block.data); found != live_.end()) {
      settle();
      write(lines_of_.use(found->second, stream.id));
    }
    inner_->record_use(block, stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (keep_bytes == 0 && !open_failure_.trimmed()) write(lines_of_.empty_cache());
    return inner_->trim(keep_bytes);
  }

  void mark(std::string_view name) override {
    settle();
    write(lines_of_.mark(name));
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    std::vector<std::pair<std::string, std::string>> entries{{"file", path_}, {"lines", fmt::format("{}", lines_)}};
    if (!failure_.empty()) entries.emplace_back("failure", failure_);
    return entries;
  }

 private:
  /// Held back: the host may give back the cache and ask again.
  void fail(const Request& request) {
    open_failure_.asked_again(request.bytes, request.stream.id);
    settle();
    const OutOfMemoryInfo now{.requested_bytes = request.bytes,
                              .reserved_bytes = observed_.reserved_bytes(),
                              .device_free_bytes = observed_.usage().free_bytes,
                              .capacity_bytes = observed_.traits().capacity_bytes,
                              .limit_bytes = observed_.limit()};
    open_failure_.open({.id = next_id_++,
                        .bytes = request.bytes,
                        .stream = request.stream.id,
                        .reserved_bytes = now.reserved_bytes,
                        .device_free_bytes = available_bytes(now)});
  }

  void settle() noexcept {
    if (!open_failure_.is_open() && open_failure_.trims() == 0) return;
    open_failure_.settle(
        [&](const FailedRequest& failed) {
          write(lines_of_.failed(failed.id, failed.bytes, failed.stream, failed.reserved_bytes,
                                 failed.device_free_bytes));
          write(lines_of_.free(failed.id));
        },
        [&] { write(lines_of_.empty_cache()); });
  }

  void write(std::string_view text) noexcept {
    if (file_ == nullptr) return;
    if (gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0) {
      ++lines_;
      return;
    }
    // The program matters more than its trace: say so and go on without.
    failure_ = fmt::format("writing '{}' failed after {} lines: {}", path_, lines_, std::strerror(errno));
    std::fprintf(stderr, "tenon: trace: %s\n", failure_.c_str());
    gzclose(file_);
    file_ = nullptr;
  }

  ObservedSource& observed_;
  const std::string path_;
  TextLines lines_of_;
  OpenFailure open_failure_;
  gzFile file_ = nullptr;
  std::uint64_t next_id_ = 0;
  std::uint64_t lines_ = 0;
  std::string failure_;
  std::unordered_map<const void*, std::uint64_t> live_;
};

}  // namespace

LayerInfo trace_layer() {
  return {
      .name = "trace",
      .summary = "writes every request, free and use to a file that `tenon replay` reads",
      .options = {OptionSpec::text("file", "memory.trace.gz", "where to; compressed if the name ends in .gz")},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Trace>(std::move(inner), context);
      }};
}

}  // namespace tenon
