// Tenon's own trace file: append-only chunks, each with its checksum, so that a recording that was killed is valid up
// to its last flush. Sizes, streams, texts and stacks are written once in a file and then named by number.
//
// clang-format off
//   file    = "TENONTRC", u8 version, chunks
//   chunk   = u32 bytes (at most 2^24), u32 crc32 of the payload, payload: whole records. u32: little-endian
//   record  = u8 tag, fields. A field is a varint: 7 bits a byte, low ones first, the high bit where another follows
//   x#      = number of a known one, from 0; or the count of known ones, and then the new one:
//             size, stream: a varint; text: bytes, then these; stack: frames, then of each, innermost first, text# of its
//             function, text# of its file, line
//   block   = allocations since the block's own, that one too: 1 is the last
//
//     kAllocate           size# stream#
//     kAllocateWithStack  size# stream# stack#
//     kFree               block
//     kFreeDeferred       block                     of a block whose other streams are not done with it yet
//     kFreeCompleted      block                     its end
//     kUse                block stream#
//     kEmptyCache
//     kMark               text#
//     kHeader             text# text#               key, value
//     kStarts                                       what was allocated before was there when the recording began
//     kFails              reserved free             bytes: the next event is an allocation that ran out of memory, the
//                                                   one after it its kFree; what was reserved, and left on the device
//   Since version 2, of a recording whose device calls are known, which a header kDeviceCallCount counts:
//     kDeviceCall         kind bytes events         kind: binary_device_call(); events: how many of those written so far
//                                                   came after it (allocations, frees, uses, kEmptyCache)
//     kSegment            address bytes stream flags   at the start, by rising address; flags: 1 large, 2 expandable
//     kSeedAddress        address - the last one    where the blocks of the start lay, in rising order
//   Since version 3, which is written only where the times or purposes are known:
//     kTime               time - the last one       microseconds, zigzag, from 0: of the events from here on
//     kPurpose            Purpose                   of the allocations from here on
// clang-format on
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::replay {

inline constexpr char kBinaryMagic[] = "TENONTRC";
inline constexpr std::uint8_t kBinaryVersion = 3;
inline constexpr std::uint8_t kBinaryVersionWithoutColumns = 2;  ///< so that earlier programs can read it
inline constexpr std::uint32_t kMaxChunkBytes = 1 << 24;

enum class BinaryTag : std::uint8_t {
  kAllocate = 1,
  kFree,
  kFreeDeferred,
  kFreeCompleted,
  kUse,
  kEmptyCache,
  kMark,
  kHeader,
  kStarts,
  kAllocateWithStack,
  kFails,
  kDeviceCall,
  kSegment,
  kSeedAddress,
  kTime,
  kPurpose
};

/// The kind of a device call in the file: 0 alloc, 1 free, 2 map, 3 unmap, 4 out of memory.
constexpr std::uint64_t binary_device_call(HistoryAction action) {
  return static_cast<std::uint64_t>(action) - static_cast<std::uint64_t>(HistoryAction::kSegmentAlloc);
}
constexpr HistoryAction action_of_binary(std::uint64_t kind) {
  return static_cast<HistoryAction>(kind + static_cast<std::uint64_t>(HistoryAction::kSegmentAlloc));
}
static_assert(binary_device_call(HistoryAction::kOom) == 4);

/// The header that says how many device calls there are: a file that was cut has fewer.
inline constexpr char kDeviceCallCount[] = "recorded_device_calls";

Trace read_binary(InputFile& input, const ReadOptions& options);

/// Writes as events come. Not thread-safe.
class TENON_API BinaryTraceWriter {
 public:
  /// has_columns: `at` and `meant_for` may be called.
  /// Of a program that runs: each chunk is appended at once, so that the file is valid up to its last flush when the
  /// program is killed. Throws Error when the file cannot be written.
  explicit BinaryTraceWriter(std::string path, bool has_columns = false);
  /// Of a history that is there already: whole or not at all, "-" and .gz as OutputFile has them. `out` outlives it;
  /// closing that is the caller's business.
  explicit BinaryTraceWriter(OutputFile& out, bool has_columns = false);
  /// Flushes what it can.
  ~BinaryTraceWriter();
  BinaryTraceWriter(const BinaryTraceWriter&) = delete;
  BinaryTraceWriter& operator=(const BinaryTraceWriter&) = delete;

  void header(std::string_view key, std::string_view value);
  /// Returns the allocation's number, for the calls below. `stack`: innermost first, may be empty.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t stream, const std::vector<StackFrame>& stack = {});
  /// The next allocation is a request that ran out of memory; its free is to follow at once. Figures of that moment.
  void next_fails(std::uint64_t reserved_bytes, std::uint64_t device_free_bytes);
  void free(std::uint64_t allocation, bool deferred = false);
  void free_completed(std::uint64_t allocation);
  void use(std::uint64_t allocation, std::uint64_t stream);
  void empty_cache();
  void mark(std::string_view name);
  void recording_starts();
  /// When the events from here on were, and what the allocations from here on are for.
  void at(std::int64_t time_us);
  void meant_for(Purpose purpose);
  /// The number of device calls, the segments and the places of the blocks that the recording began with.
  void start_of(const RecordedAllocator& recorded);
  /// `events_since`: counted events that were written after the one it belongs before.
  void device_call(const DeviceCall& call, std::uint64_t events_since);

  /// Everything so far survives a kill of this process.
  void flush();
  /// Flushes and closes; throws Error when that fails.
  void close();

 private:
  void append(std::string_view bytes);
  void tag(BinaryTag tag);
  void varint(std::uint64_t value);
  void text(std::string_view value);
  void stack(const std::vector<StackFrame>& frames);
  void end_record();

  std::string path_;
  int descriptor_ = -1;
  OutputFile* out_ = nullptr;  ///< instead of the descriptor
  std::string chunk_;
  std::uint64_t allocations_ = 0;
  std::int64_t time_us_ = 0;
  bool has_time_ = false;
  std::optional<Purpose> purpose_;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_;
  std::unordered_map<std::uint64_t, std::uint64_t> streams_;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::map<std::vector<StackFrame>, std::uint64_t> stacks_;
};

}  // namespace tenon::replay
