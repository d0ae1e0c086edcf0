// Reading Tenon's binary traces. An unfinished last chunk is what a killed recording leaves: it is dropped and said.
// Declared in binary_format.h.
#include <tenon/core/units.h>
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace_builder.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kMaxExpansion = 64;
constexpr std::uint64_t kMaxAddress = std::uint64_t{1} << 63;
constexpr std::uint64_t kCopiedBytesFree = 16 << 20;
constexpr std::uint32_t kPending = 0x80000000;  // flag of a slot whose free has not completed

class BinaryReader {
 public:
  BinaryReader(InputFile& input, const ReadOptions& options)
      : input_(input), with_stacks_(options.with_stacks), with_columns_(options.with_columns), builder_(input.path()) {
    builder_.trace().format = "binary";
  }

  Trace read() {
    char magic[9];
    if (!input_.read(magic, sizeof magic)) input_.fail_at(0, "the header is truncated");
    const int version = static_cast<std::uint8_t>(magic[8]);
    if (version == 0 || version > kBinaryVersion) {
      input_.fail_at(8, "format version " + std::to_string(version) + "; this Tenon reads versions 1 to " +
                            std::to_string(static_cast<int>(kBinaryVersion)));
    }
    while (chunk()) {
    }
    settle_failure();
    Trace& trace = builder_.trace();
    trace.stacks = std::move(stacks_);
    Trace result = std::move(builder_).finish();
    take_recorded_lines(result);
    take_device_calls(result);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { input_.fail_at(chunk_offset_ + next_, reason); }

  /// They count when they are all there, in a file that is whole.
  void take_device_calls(Trace& trace) {
    const auto stated = trace.header.extract(kDeviceCallCount);
    if (stated.empty() || !trace.recorded || was_cut_) return;
    if (stated.mapped() != std::to_string(recorded_.actions.size()) ||
        recorded_.seed_addresses.size() != trace.facts.seeded_blocks)
      return;
    trace.recorded->has_device_calls = true;
    trace.recorded->actions = std::move(recorded_.actions);
    trace.recorded->initial_segments = std::move(recorded_.initial_segments);
    trace.recorded->seed_addresses = std::move(recorded_.seed_addresses);
  }

  /// A recording that was killed between a failed request and its end: it was given back at once all the same.
  void settle_failure() {
    if (fails_ && !was_cut_) fail("a request that ran out of memory is announced, and none follows");
    if (!has_failed_) return;
    builder_.free(slots_.back());
    slots_.back() = kFreedSlot;
  }
  /// What may follow such a request: its free, or something that is not an event.
  void check_order(BinaryTag tag) {
    const bool is_free = tag == BinaryTag::kFree;
    const bool is_event = is_free || tag == BinaryTag::kAllocate || tag == BinaryTag::kAllocateWithStack ||
                          tag == BinaryTag::kFreeDeferred || tag == BinaryTag::kFreeCompleted ||
                          tag == BinaryTag::kUse || tag == BinaryTag::kEmptyCache || tag == BinaryTag::kFails;
    if (!is_event) return;
    if (fails_ && tag != BinaryTag::kAllocate && tag != BinaryTag::kAllocateWithStack)
      fail("a request that ran out of memory is announced, and another event follows");
    if (has_failed_ && !is_free) fail("a request that ran out of memory is not given back at once");
  }

  bool chunk() {
    const std::uint64_t start = input_.position();
    if (input_.peek() < 0) return false;
    std::uint32_t head[2];
    if (!input_.read(head, sizeof head)) return cut(start);
    if (head[0] == 0 || head[0] > kMaxChunkBytes)
      input_.fail_at(start, "a chunk of " + std::to_string(head[0]) + " bytes");
    chunk_offset_ = input_.position();
    payload_.clear();
    while (payload_.size() < head[0]) {
      const std::string_view piece = input_.available().substr(0, head[0] - payload_.size());
      if (piece.empty()) return cut(start);
      payload_.append(piece);
      input_.consume(piece.size());
    }
    const auto sum = static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(payload_.data()), head[0]));
    if (sum != head[1]) input_.fail_at(start, "the chunk's checksum is wrong: the file is damaged");
    for (next_ = 0; next_ < payload_.size();) record();
    return true;
  }
  bool cut(std::uint64_t start) {
    was_cut_ = true;
    builder_.trace().notes.push_back("the recording was cut: what follows byte " + std::to_string(start) +
                                     " was not flushed");
    return false;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (next_ >= payload_.size()) fail("a record that ends in the middle");
      const auto byte = static_cast<std::uint8_t>(payload_[next_++]);
      if (shift == 63 && byte > 1) fail("a number beyond 64 bits");
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("a number beyond 64 bits");
  }
  std::uint64_t interned(std::vector<std::uint64_t>& known, const char* what) {
    const std::uint64_t index = varint();
    if (index > known.size()) fail(std::string("names an unknown ") + what);
    if (index == known.size()) known.push_back(varint());
    return known[index];
  }
  /// Index of a text in texts_.
  std::size_t text() {
    const std::uint64_t index = varint();
    if (index > texts_.size()) fail("names an unknown text");
    if (index == texts_.size()) {
      const std::uint64_t bytes = varint();
      if (bytes > payload_.size() - next_) fail("a text that ends in the middle");
      texts_.push_back(payload_.substr(next_, bytes));
      next_ += bytes;
    }
    return index;
  }
  /// Frames and headers get texts of their own, which the file states once: a small file does not become a large one.
  void copies(std::size_t bytes) {
    copied_bytes_ += bytes;
    if (copied_bytes_ > kCopiedBytesFree + kMaxExpansion * input_.position())
      fail("its stacks name the same long texts over and over: refused");
  }
  std::uint32_t stack() {
    const std::uint64_t index = varint();
    if (index > stack_numbers_.size()) fail("names an unknown stack");
    if (index == stack_numbers_.size()) {
      const std::uint64_t count = varint();
      if (count > payload_.size() - next_) fail("a stack that ends in the middle");
      std::vector<std::uint32_t> ids;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t function = text();
        const std::size_t file = text();
        const auto line = static_cast<std::uint32_t>(varint());
        if (!with_stacks_) continue;
        const auto [entry, is_new] =
            frame_ids_.try_emplace({function, file, line}, static_cast<std::uint32_t>(stacks_.frames.size()));
        if (is_new) {
          copies(texts_[function].size() + texts_[file].size());
          stacks_.frames.push_back({texts_[function], texts_[file], line});
        }
        ids.push_back(entry->second);
      }
      if (with_stacks_) stacks_.stacks.push_back(std::move(ids));
      stack_numbers_.push_back(with_stacks_ ? static_cast<StackId>(stacks_.stacks.size() - 1) : 0);
    }
    return stack_numbers_[index];
  }

  std::uint32_t& block() {
    const std::uint64_t back = varint();
    if (back == 0 || back > slots_.size()) fail("names an allocation that is not there");
    return slots_[slots_.size() - back];
  }
  std::uint32_t& live_block(const char* verb) {
    std::uint32_t& slot = block();
    if (slot == kFreedSlot || (slot & kPending) != 0) fail(std::string(verb) + " a block that was freed before");
    return slot;
  }

  void allocate(bool has_stack) {
    const std::uint64_t bytes = interned(sizes_, "size");
    const std::uint64_t stream = interned(streams_, "stream");
    const std::uint32_t stack = has_stack ? this->stack() : 0;
    if (bytes == 0 || builder_.would_overflow(bytes)) fail("a size out of range: " + std::to_string(bytes));
    if (fails_) {
      fails_->bytes = bytes;
      fails_->stream = stream;
      builder_.next_fails(*fails_);
      fails_.reset();
      has_failed_ = true;
    }
    const std::uint32_t slot = builder_.allocate(bytes, stream);
    if (slot >= kPending - 1) fail("more than 2^31 blocks alive at once");
    slots_.push_back(slot);
    if (with_stacks_) builder_.trace().stack_of_allocation.push_back(stack);
  }

  void device_call() {
    const std::uint64_t kind = varint();
    const std::uint64_t bytes = varint();
    const std::uint64_t since = varint();
    if (kind > binary_device_call(HistoryAction::kOom) || bytes > kMaxAddress || since > builder_.counted())
      fail("a device call that cannot be");
    recorded_.actions.push_back({action_of_binary(kind), bytes, builder_.counted() - since});
  }
  void segment() {
    SegmentInfo segment;
    segment.address = varint();
    segment.bytes = varint();
    segment.stream.id = varint();
    const std::uint64_t flags = varint();
    segment.is_large = (flags & 1) != 0;
    segment.is_expandable = (flags & 2) != 0;
    const bool goes_back =
        !recorded_.initial_segments.empty() && recorded_.initial_segments.back().address >= segment.address;
    if (segment.address > kMaxAddress || segment.bytes > kMaxDeviceBytes || goes_back) fail("a segment out of range");
    recorded_.initial_segments.push_back(segment);
  }

  void time() {
    const std::uint64_t zigzag = varint();
    const auto half = static_cast<std::int64_t>(zigzag >> 1);
    const std::int64_t later = (zigzag & 1) != 0 ? ~half : half;
    if (later > kMaxTimeUs || later < -kMaxTimeUs || time_us_ + later > kMaxTimeUs || time_us_ + later < 0)
      fail("a time out of range");
    time_us_ += later;
    if (with_columns_) builder_.at(time_us_);
  }
  void purpose() {
    const std::uint64_t purpose = varint();
    if (purpose >= kPurposeCount) fail("an unknown purpose");
    if (with_columns_) builder_.meant_for(static_cast<Purpose>(purpose));
  }

  void record() {
    const auto tag = static_cast<BinaryTag>(payload_[next_++]);
    if (fails_ || has_failed_) check_order(tag);
    switch (tag) {
      case BinaryTag::kAllocate:
        return allocate(false);
      case BinaryTag::kAllocateWithStack:
        return allocate(true);
      case BinaryTag::kFree: {
        std::uint32_t& slot = live_block("frees");
        if (has_failed_ && &slot != &slots_.back()) fail("a request that ran out of memory is not given back at once");
        has_failed_ = false;
        builder_.free(slot);
        slot = kFreedSlot;
        return;
      }
      case BinaryTag::kFreeDeferred: {
        std::uint32_t& slot = live_block("frees");
        builder_.free(slot, true);
        slot |= kPending;
        return;
      }
      case BinaryTag::kFreeCompleted: {
        std::uint32_t& slot = block();
        if (slot == kFreedSlot || (slot & kPending) == 0) fail("completes a free that is not pending");
        builder_.free_completed(slot & ~kPending);
        slot = kFreedSlot;
        return;
      }
      case BinaryTag::kUse: {
        const std::uint32_t slot = live_block("uses");
        builder_.use(slot, interned(streams_, "stream"));
        return;
      }
      case BinaryTag::kEmptyCache:
        return builder_.empty_cache();
      case BinaryTag::kMark:
        return builder_.mark(texts_[text()]);
      case BinaryTag::kHeader: {
        const std::size_t key = text();
        const std::size_t value = text();
        copies(texts_[key].size() + texts_[value].size());
        builder_.header(texts_[key], texts_[value]);
        return;
      }
      case BinaryTag::kStarts:
        if (builder_.trace().facts.frees != 0 || builder_.trace().facts.seeded_blocks != 0)
          fail("the recording starts twice, or after a free");
        return builder_.recording_starts();
      case BinaryTag::kFails: {
        const std::uint64_t reserved = std::min(varint(), kMaxDeviceBytes);
        const std::uint64_t left = std::min(varint(), kMaxDeviceBytes);
        fails_ = FailedRequest{.reserved_bytes = reserved, .device_free_bytes = left};
        return;
      }
      case BinaryTag::kDeviceCall:
        return device_call();
      case BinaryTag::kSegment:
        return segment();
      case BinaryTag::kSeedAddress: {
        const std::uint64_t last = recorded_.seed_addresses.empty() ? 0 : recorded_.seed_addresses.back();
        const std::uint64_t distance = varint();
        if (distance > kMaxAddress - last || (distance == 0 && !recorded_.seed_addresses.empty()))
          fail("the address of a block is out of range");
        recorded_.seed_addresses.push_back(last + distance);
        return;
      }
      case BinaryTag::kTime:
        return time();
      case BinaryTag::kPurpose:
        return purpose();
    }
    --next_;
    fail("unknown record " + std::to_string(static_cast<int>(tag)));
  }

  InputFile& input_;
  bool with_stacks_;
  bool with_columns_;
  TraceBuilder builder_;
  std::int64_t time_us_ = 0;
  std::uint64_t chunk_offset_ = 0;
  std::string payload_;
  std::size_t next_ = 0;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> streams_;
  std::vector<std::string> texts_;
  std::uint64_t copied_bytes_ = 0;
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, std::uint32_t> frame_ids_;  ///< function, file, line
  CallStacks stacks_;
  std::vector<std::uint32_t> stack_numbers_;
  std::optional<FailedRequest> fails_;  ///< the next allocation
  bool has_failed_ = false;             ///< the last allocation; its free is to come
  RecordedAllocator recorded_;          ///< its device calls
  bool was_cut_ = false;
};

}  // namespace

Trace read_binary(InputFile& input, const ReadOptions& options) { return BinaryReader(input, options).read(); }

}  // namespace tenon::replay
