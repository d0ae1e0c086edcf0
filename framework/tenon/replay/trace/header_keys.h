// The lines `# KEY: VALUE` of a history that mean something to Tenon: one table for all who write, read and keep them.
// What each says is in text_histories.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tenon::replay {

namespace header_key {
inline constexpr char kName[] = "name";
inline constexpr char kSourceFormat[] = "source_format";
inline constexpr char kPreExisting[] = "pre_existing";
inline constexpr char kEvents[] = "events";
inline constexpr char kAllocs[] = "allocs";
inline constexpr char kFrees[] = "frees";
inline constexpr char kPeakLive[] = "peak_live_bytes";
inline constexpr char kEndLive[] = "end_live_bytes";
inline constexpr char kTotalAlloc[] = "total_alloc_bytes";
inline constexpr char kMaxSize[] = "max_size";
inline constexpr char kStreamIds[] = "stream_ids";

inline constexpr char kDevice[] = "device";
inline constexpr char kAllocator[] = "allocator";
inline constexpr char kAllocatorOptions[] = "allocator_options";
inline constexpr char kAllocatorPlugin[] = "allocator_plugin";

inline constexpr char kConf[] = "recorded_conf";
inline constexpr char kPeak[] = "recorded_peak_reserved_bytes";
inline constexpr char kEnd[] = "recorded_end_reserved_bytes";
inline constexpr char kStart[] = "recorded_start_reserved_bytes";
inline constexpr char kPressed[] = "recorded_times_pressed";
inline constexpr char kWhole[] = "recorded_from_an_empty_device";
inline constexpr char kUnplaced[] = "unplaced_bytes";
inline constexpr char kRounded[] = "sizes_rounded_to";
inline constexpr char kDistrust[] = "recorded_distrust";
inline constexpr char kRemark[] = "remark ";  ///< a number follows
}  // namespace header_key

enum class HeaderOrigin : std::uint8_t {
  kProgram,    ///< said by the program that recorded; passed on as it is
  kWriter,     ///< counted anew by whoever writes the file
  kRecording,  ///< of the recording as a whole: recorded_lines.h
};

struct HeaderKey {
  std::string_view key;
  HeaderOrigin origin;
};

inline constexpr HeaderKey kHeaderKeys[] = {{header_key::kName, HeaderOrigin::kWriter},
                                            {header_key::kSourceFormat, HeaderOrigin::kWriter},
                                            {header_key::kPreExisting, HeaderOrigin::kWriter},
                                            {header_key::kEvents, HeaderOrigin::kWriter},
                                            {header_key::kAllocs, HeaderOrigin::kWriter},
                                            {header_key::kFrees, HeaderOrigin::kWriter},
                                            {header_key::kPeakLive, HeaderOrigin::kWriter},
                                            {header_key::kEndLive, HeaderOrigin::kWriter},
                                            {header_key::kTotalAlloc, HeaderOrigin::kWriter},
                                            {header_key::kMaxSize, HeaderOrigin::kWriter},
                                            {header_key::kStreamIds, HeaderOrigin::kWriter},
                                            {header_key::kDevice, HeaderOrigin::kProgram},
                                            {header_key::kAllocator, HeaderOrigin::kProgram},
                                            {header_key::kAllocatorOptions, HeaderOrigin::kProgram},
                                            {header_key::kAllocatorPlugin, HeaderOrigin::kProgram},
                                            {header_key::kConf, HeaderOrigin::kRecording},
                                            {header_key::kPeak, HeaderOrigin::kRecording},
                                            {header_key::kEnd, HeaderOrigin::kRecording},
                                            {header_key::kStart, HeaderOrigin::kRecording},
                                            {header_key::kPressed, HeaderOrigin::kRecording},
                                            {header_key::kWhole, HeaderOrigin::kRecording},
                                            {header_key::kUnplaced, HeaderOrigin::kRecording},
                                            {header_key::kRounded, HeaderOrigin::kRecording},
                                            {header_key::kDistrust, HeaderOrigin::kRecording},
                                            {header_key::kRemark, HeaderOrigin::kRecording}};

/// Null for a key that means nothing here. Remarks are in the table without their numbers.
constexpr const HeaderKey* find_header_key(std::string_view key) {
  const auto found = std::ranges::find(kHeaderKeys, key, &HeaderKey::key);
  return found == std::end(kHeaderKeys) ? nullptr : &*found;
}

}  // namespace tenon::replay
