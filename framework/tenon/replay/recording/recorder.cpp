// Recording requests as they pass.
#include <tenon/memory/history/event_time.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <utility>

namespace tenon::replay {

namespace {

constexpr std::size_t kMaxMarks = 1'000'000;

bool is_written_in_lines(const std::string& name) {
  const Format* const format = format_of_ending(name);
  return format != nullptr && format->records_lines;
}

/// Passes everything on and tells the recorder. A free is told before the call, an allocation after it: another thread
/// may get the address in between.
class Recording final : public LayerAllocator {
 public:
  Recording(std::unique_ptr<Allocator> inner, std::shared_ptr<Recorder> recorder)
      : LayerAllocator(std::move(inner)), recorder_(std::move(recorder)) {}

  Block allocate(const Request& request) override {
    try {
      const Block block = inner_->allocate(request);
      recorder_->allocated(block.data, request.bytes, request.stream.id, request.purpose);
      return block;
    } catch (const OutOfMemory&) {
      recorder_->failed(request.bytes, request.stream.id, request.purpose);
      throw;
    }
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (!(last_use == block.request.stream)) recorder_->used(block.data, last_use.id);
    recorder_->freed(block.data);
    inner_->deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    recorder_->used(block.data, stream.id);
    inner_->record_use(block, stream);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    if (keep_bytes == 0) recorder_->trimmed();
    return inner_->trim(keep_bytes);
  }
  void mark(std::string_view name) override { recorder_->mark(name); }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace

Recorder::Recorder(std::size_t tail_events) : tail_events_(std::max<std::size_t>(1, tail_events)) {}

Recorder::~Recorder() {
  try {
    close();
  } catch (const Error&) {  // nobody is left to be told
  }
}

void Recorder::write_to(const std::string& path, const std::vector<std::pair<std::string, std::string>>& header) {
  const std::lock_guard lock(mutex_);
  if (is_written_in_lines(path)) {
    text_ = std::make_unique<OutputFile>(path);
    for (const auto& [key, value] : header) text_->write(lines_.header(key, value));
  } else {
    binary_ = std::make_unique<BinaryTraceWriter>(path, /*has_columns=*/true);
    for (const auto& [key, value] : header) binary_->header(key, value);
    binary_->flush();
  }
}

void Recorder::close() {
  const std::lock_guard lock(mutex_);
  settle_locked();
  const auto text = std::move(text_);
  const auto binary = std::move(binary_);
  if (text != nullptr) text->close();
  if (binary != nullptr) binary->close();
}

std::string Recorder::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::uint64_t Recorder::lost_events() const {
  const std::lock_guard lock(mutex_);
  return lost_events_;
}

std::vector<std::pair<std::int64_t, std::string>> Recorder::marks() const {
  const std::lock_guard lock(mutex_);
  return {marks_.begin(), marks_.end()};
}

template <class Change>
void Recorder::guarded(Change change) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    change();
  } catch (const std::exception& error) {  // the program matters more than what is written of it
    const std::lock_guard lock(mutex_);
    failure_ = error.what();
    text_.reset();
    binary_.reset();
  }
}

/// Where the log's records go.
struct Recorder::Records {
  Recorder& recorder;
  Purpose purpose = Purpose::kOther;  ///< of the allocation that is told
  void allocated(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream) const {
    recorder.keep_locked(
        {.id = id, .request = {.bytes = bytes, .stream = stream, .purpose = purpose}, .kind = EventKind::kAllocate});
  }
  void failed(std::uint64_t id, const FailedRequest& request) const { recorder.keep_locked(failure_of(id, request)); }
  void used(std::uint64_t id, std::uint64_t stream) const {
    recorder.keep_locked({.id = id, .request = {.stream = stream}, .kind = EventKind::kUse});
  }
  void freed(std::uint64_t id) const { recorder.keep_locked({.id = id, .kind = EventKind::kFree}); }
  void emptied_cache() const { recorder.keep_locked({.kind = EventKind::kEmptyCache}); }
};

void Recorder::allocated(const void* data, std::uint64_t bytes, std::uint64_t stream, Purpose purpose) noexcept {
  guarded([&] { log_.allocated(data, bytes, stream, Records{*this, purpose}); });
}

void Recorder::failed(std::uint64_t bytes, std::uint64_t stream, Purpose purpose) noexcept {
  guarded([&] { log_.failed({.bytes = bytes, .stream = stream, .purpose = purpose}, Records{*this}); });
}

void Recorder::explain_failure(std::uint64_t reserved_bytes, std::uint64_t device_free_bytes) noexcept {
  guarded([&] { log_.open_failure().explain(reserved_bytes, device_free_bytes); });
}

void Recorder::used(const void* data, std::uint64_t stream) noexcept {
  guarded([&] { log_.used(data, stream, Records{*this}); });
}

void Recorder::freed(const void* data) noexcept {
  guarded([&] { log_.freed(data, Records{*this}); });
}

void Recorder::trimmed() noexcept {
  guarded([&] { log_.emptied_cache(Records{*this}); });
}

void Recorder::mark(std::string_view name) noexcept {
  guarded([&] {
    settle_locked();
    if (events_.size() >= 2 * tail_events_) forget_locked();  // before the name is there: it keeps those of events only
    names_.emplace_back(name);
    std::ranges::replace(names_.back(), '\n', ' ');
    std::ranges::replace(names_.back(), '\r', ' ');
    marks_.emplace_back(microseconds_now(), names_.back());
    if (marks_.size() > kMaxMarks) marks_.pop_front();
    keep_locked({.id = names_.size() - 1, .kind = EventKind::kMark});
  });
}

Recorder::Event Recorder::failure_of(std::uint64_t id, const FailedRequest& request) {
  return {.id = id, .request = request, .kind = EventKind::kAllocate, .has_failed = true};
}

void Recorder::settle_locked() { log_.settle(Records{*this}); }

void Recorder::keep_locked(const Event& event) {
  if (events_.size() >= 2 * tail_events_) forget_locked();
  events_.push_back(event);
  if (text_ == nullptr && binary_ == nullptr) return;
  const std::int64_t time_us = microseconds_now();
  if (text_ != nullptr) write_text_locked(event, time_us);
  if (binary_ != nullptr) write_binary_locked(event, time_us);
}

// The older half goes; what it allocated and did not free becomes the state that the tail begins with.
void Recorder::forget_locked() {
  for (std::size_t i = 0; i < tail_events_; ++i) {
    const Event& event = events_[i];
    if (event.kind == EventKind::kAllocate && !event.has_failed) seeds_.emplace(event.id, event);
    if (event.kind == EventKind::kFree) seeds_.erase(event.id);
  }
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(tail_events_));
  lost_events_ += tail_events_;
  std::vector<std::string> names;
  for (Event& event : events_) {
    if (event.kind != EventKind::kMark) continue;
    names.push_back(std::move(names_[event.id]));
    event.id = names.size() - 1;
  }
  names_ = std::move(names);
}

void Recorder::write_text_locked(const Event& event, std::int64_t time_us) {
  if (event.kind != EventKind::kMark) text_->write(lines_.at(time_us));
  if (event.kind == EventKind::kAllocate) text_->write(lines_.meant_for(event.request.purpose));
  switch (event.kind) {
    case EventKind::kAllocate:
      if (!event.has_failed) return text_->write(lines_.allocate(event.id, event.request.bytes, event.request.stream));
      text_->write(lines_.failed(event.id, event.request.bytes, event.request.stream, event.request.reserved_bytes,
                                 event.request.device_free_bytes));
      return text_->write(lines_.free(event.id));
    case EventKind::kUse:
      return text_->write(lines_.use(event.id, event.request.stream));
    case EventKind::kFree:
      return text_->write(lines_.free(event.id));
    case EventKind::kEmptyCache:
      return text_->write(lines_.empty_cache());
    case EventKind::kMark:
      return text_->write(lines_.mark(names_[event.id]));
    case EventKind::kFreeCompleted:  // a program that runs does not see it
      return;
  }
}

void Recorder::write_binary_locked(const Event& event, std::int64_t time_us) {
  if (event.kind != EventKind::kMark) binary_->at(time_us);
  if (event.kind == EventKind::kAllocate) binary_->meant_for(event.request.purpose);
  const auto known = [&] { return file_ids_.find(event.id); };
  switch (event.kind) {
    case EventKind::kAllocate:
      if (!event.has_failed) {
        file_ids_[event.id] = binary_->allocate(event.request.bytes, event.request.stream);
        return;
      }
      binary_->next_fails(event.request.reserved_bytes, event.request.device_free_bytes);
      return binary_->free(binary_->allocate(event.request.bytes, event.request.stream));
    case EventKind::kUse:
      if (known() != file_ids_.end()) binary_->use(known()->second, event.request.stream);
      return;
    case EventKind::kFree:
      if (known() == file_ids_.end()) return;
      binary_->free(known()->second);
      file_ids_.erase(event.id);
      return;
    case EventKind::kEmptyCache:
      return binary_->empty_cache();
    case EventKind::kMark:
      binary_->mark(names_[event.id]);
      return binary_->flush();
    case EventKind::kFreeCompleted:
      return;
  }
}

Trace Recorder::tail(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  TraceBuilder builder(name);
  builder.trace().format = "recorded";
  std::unordered_map<std::uint64_t, std::uint32_t> slots;
  for (const auto& [id, seed] : seeds_) slots[id] = builder.allocate(seed.request.bytes, seed.request.stream);
  builder.recording_starts();
  const auto add = [&](const Event& event) {
    switch (event.kind) {
      case EventKind::kAllocate:
        if (!event.has_failed) {
          slots[event.id] = builder.allocate(event.request.bytes, event.request.stream);
          break;
        }
        builder.fail(event.request);
        break;
      case EventKind::kUse:
        builder.use(slots.at(event.id), event.request.stream);
        break;
      case EventKind::kFree:
        builder.free(slots.at(event.id));
        slots.erase(event.id);
        break;
      case EventKind::kEmptyCache:
        builder.empty_cache();
        break;
      case EventKind::kMark:
        builder.mark(names_[event.id]);
        break;
      case EventKind::kFreeCompleted:
        break;
    }
  };
  std::ranges::for_each(events_, add);
  const OpenFailure& held_back = log_.open_failure();
  if (held_back.is_open()) add(failure_of(held_back.id(), *held_back.request()));
  for (std::uint64_t i = 0; i < held_back.trims(); ++i) add({.kind = EventKind::kEmptyCache});
  return std::move(builder).finish();
}

LayerInfo recording_layer(std::string name, std::shared_ptr<Recorder> recorder) {
  return {
      .name = std::move(name),
      .summary = "tells a recorder",
      .options = {},
      .create = [recorder](std::unique_ptr<Allocator> inner, const LayerContext&) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Recording>(std::move(inner), recorder);
      }};
}

}  // namespace tenon::replay
