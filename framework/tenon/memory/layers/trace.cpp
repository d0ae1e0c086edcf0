// Layer `trace`: writes what passes as a text history, which `tenon replay` reads.
#include <tenon/core/error.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/history/event_time.h>
#include <tenon/memory/history/request_log.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/observed_source.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace tenon {

namespace {

/// The file, as what a RequestLog writes its records to.
class TraceFile {
 public:
  TraceFile(const std::string& path, const std::string& device) : path_(path) {
    // "T": no compression; the file is plain text then.
    file_ = gzopen(path_.c_str(), path_.ends_with(".gz") ? "wb6" : "wbT");
    if (file_ == nullptr) {
      throw Error(fmt::format("layer 'trace' cannot write '{}': {}; set option 'file' to a path in an existing folder",
                              path_, std::strerror(errno)));
    }
    gzbuffer(file_, 1 << 17);
    write(lines_of_.comment(fmt::format("tenon memory history of {}", device)));
    write(lines_of_.comment("a ID SIZE STREAM | f ID | u ID STREAM | e | m NAME"));
  }
  ~TraceFile() {
    if (file_ != nullptr && gzclose(file_) != Z_OK) say_it_failed();  // what was still to be written
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// What the allocation that comes next is for.
  void meant_for(Purpose purpose) noexcept { purpose_ = purpose; }
  void allocated(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream) noexcept {
    now();
    write(lines_of_.meant_for(purpose_));
    write(lines_of_.allocate(id, bytes, stream));
  }
  void failed(std::uint64_t id, const FailedRequest& failed) noexcept {
    now();
    write(lines_of_.meant_for(failed.purpose));
    write(lines_of_.failed(id, failed.bytes, failed.stream, failed.reserved_bytes, failed.device_free_bytes));
    write(lines_of_.free(id));
  }
  void used(std::uint64_t id, std::uint64_t stream) noexcept {
    now();
    write(lines_of_.use(id, stream));
  }
  void freed(std::uint64_t id) noexcept {
    now();
    write(lines_of_.free(id));
  }
  void emptied_cache() noexcept {
    now();
    write(lines_of_.empty_cache());
  }
  void mark(std::string_view name) noexcept { write(lines_of_.mark(name)); }

  std::vector<std::pair<std::string, std::string>> summary() const {
    std::vector<std::pair<std::string, std::string>> entries{{"file", path_}, {"lines", fmt::format("{}", lines_)}};
    if (!failure_.empty()) entries.emplace_back("failure", failure_);
    return entries;
  }

 private:
  void now() noexcept { write(lines_of_.at(microseconds_now())); }
  void write(std::string_view text) noexcept {
    if (file_ == nullptr || text.empty()) return;
    if (gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0) {
      ++lines_;
      return;
    }
    // The program matters more than its trace: say so and go on without.
    say_it_failed();
    gzclose(file_);
    file_ = nullptr;
  }
  void say_it_failed() {
    failure_ = fmt::format("writing '{}' failed after {} lines: {}", path_, lines_, std::strerror(errno));
    std::fprintf(stderr, "tenon: trace: %s\n", failure_.c_str());
  }

  const std::string path_;
  TextLines lines_of_;
  Purpose purpose_ = Purpose::kOther;
  gzFile file_ = nullptr;
  std::uint64_t lines_ = 0;
  std::string failure_;
};

class Trace final : public LayerAllocator {
 public:
  Trace(std::unique_ptr<Allocator> inner, const LayerContext& context)
      : LayerAllocator(std::move(inner)),
        observed_(context.observed),
        file_(context.options.text("file"), context.traits.device) {}

  ~Trace() override { log_.settle(file_); }

  Block allocate(const Request& request) override {
    try {
      const Block block = inner_->allocate(request);
      file_.meant_for(request.purpose);
      log_.allocated(block.data, request.bytes, request.stream.id, file_);
      return block;
    } catch (const OutOfMemory&) {
      fail(request);
      throw;
    }
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (!(last_use == block.request.stream)) log_.used(block.data, last_use.id, file_);
    log_.freed(block.data, file_);
    inner_->deallocate(block, last_use);
  }

  void record_use(const Block& block, StreamRef stream) override {
    log_.used(block.data, stream.id, file_);
    inner_->record_use(block, stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (keep_bytes == 0) log_.emptied_cache(file_);
    return inner_->trim(keep_bytes);
  }

  void mark(std::string_view name) override {
    log_.settle(file_);
    file_.mark(name);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override { return file_.summary(); }

 private:
  void fail(const Request& request) {
    const OutOfMemoryInfo now{.requested_bytes = request.bytes,
                              .reserved_bytes = observed_.reserved_bytes(),
                              .device_free_bytes = observed_.usage().free_bytes,
                              .capacity_bytes = observed_.traits().capacity_bytes,
                              .limit_bytes = observed_.limit()};
    log_.failed({.bytes = request.bytes,
                 .stream = request.stream.id,
                 .reserved_bytes = now.reserved_bytes,
                 .device_free_bytes = available_bytes(now),
                 .purpose = request.purpose},
                file_);
  }

  ObservedSource& observed_;
  TraceFile file_;
  RequestLog log_;
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
