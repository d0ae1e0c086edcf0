// A stand-in of CUPTI's activity interface for the calls of the plugin: what ran is told by the emulated machine, on a
// clock of the stand-in's own. Records have the newest layouts. Correlations are told only where calls are recorded, as
// its documentation has it, and what is recorded comes only when it is flushed.
#include <cupti.h>

#include "support/emulated_cuda/libraries/operands.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace tenon::emulated_cuda;

namespace {

constexpr std::uint64_t kClockAhead = 123'456'789'000;  ///< of steady_clock, so that a clock that is not read shows

std::mutex g_mutex;  // guards what follows; CUPTI's functions are called without the machine's lock
CUpti_BuffersCallbackRequestFunc g_request = nullptr;
CUpti_BuffersCallbackCompleteFunc g_complete = nullptr;
std::set<CUpti_ActivityKind> g_enabled;
std::vector<std::vector<unsigned char>> g_records;
std::uint32_t g_calls = 0;
std::uint64_t g_began = 0;
std::deque<std::string> g_names;  // as long as the process: records point to them

thread_local std::vector<std::uint64_t> t_external;

std::uint64_t now() {
  return kClockAhead + static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                      std::chrono::steady_clock::now().time_since_epoch())
                                                      .count());
}

template <class Record>
void add_locked(const Record& record) {
  if (!g_enabled.contains(record.kind)) return;
  std::vector<unsigned char>& bytes = g_records.emplace_back(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
}

/// Something is queued.
std::uint64_t tag() {
  const std::lock_guard lock(g_mutex);
  const std::uint32_t call = ++g_calls;
  if (!g_enabled.contains(CUPTI_ACTIVITY_KIND_RUNTIME) && !g_enabled.contains(CUPTI_ACTIVITY_KIND_DRIVER)) return call;
  if (!t_external.empty()) {
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    record.externalId = t_external.back();
    record.correlationId = call;
    add_locked(record);
  }
  CUpti_ActivityAPI record{};
  record.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  record.correlationId = call;
  add_locked(record);
  return call;
}

void began() {
  const std::lock_guard lock(g_mutex);
  g_began = now();
}

template <class Record>
void fill_common(Record& record, const Ran& ran) {
  record.start = g_began;
  record.end = now() + 1;
  record.deviceId = static_cast<std::uint32_t>(ran.device);
  record.streamId = static_cast<std::uint32_t>(ran.stream);
  record.correlationId = static_cast<std::uint32_t>(ran.tag);
}

/// In the machine's lock.
void ended(const Ran& ran) {
  const std::lock_guard lock(g_mutex);
  const auto is_device = [](const void* pointer) { return machine().space.is_device(pointer); };
  const auto memory_of = [&](const void* pointer) {
    return static_cast<std::uint8_t>(is_device(pointer)                ? CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
                                     : machine().is_pinned(pointer, 1) ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
                                                                       : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  };
  const bool is_library = ran.what.starts_with("cublas") || ran.what.starts_with("cudnn");
  if (!ran.kernel.empty() || is_library) {
    g_names.push_back(is_library ? ran.what : ran.kernel);
    CUpti_ActivityKernel10 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    fill_common(record, ran);
    record.name = g_names.back().c_str();
    add_locked(record);
  } else if (ran.what == "cudaMemcpyAsync") {
    CUpti_ActivityMemcpy6 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    fill_common(record, ran);
    record.bytes = ran.bytes;
    record.srcKind = memory_of(ran.from);
    record.dstKind = memory_of(ran.to);
    record.copyKind = static_cast<std::uint8_t>(!is_device(ran.to)    ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                                : is_device(ran.from) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                                                                      : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    add_locked(record);
  } else if (ran.what == "cudaMemsetAsync") {
    CUpti_ActivityMemset4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    fill_common(record, ran);
    record.bytes = ran.bytes;
    record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    add_locked(record);
  }
}

/// An injected failure.
CUptiResult refusal_of(const char* function) {
  const Call call(function, Call::Needs::kNothing);
  return static_cast<CUptiResult>(call.driver_refusal());
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    default:
      misuse("CUPTI's records of kind " + std::to_string(kind) + " are not emulated");
  }
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  if (const CUptiResult refusal = refusal_of("cuptiActivityRegisterCallbacks")) return refusal;
  const std::lock_guard lock(g_mutex);
  g_request = request;
  g_complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (const CUptiResult refusal = refusal_of("cuptiActivityEnable")) return refusal;
  const std::lock_guard lock(g_mutex);
  if (g_request == nullptr) misuse("cuptiActivityEnable before cuptiActivityRegisterCallbacks: its records are lost");
  g_enabled.insert(kind);
  use_tool({.tag = tag, .began = began, .ended = ended});
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(g_mutex);
  g_enabled.erase(kind);
  if (!g_enabled.empty()) return CUPTI_SUCCESS;
  use_tool({});
  if (!t_external.empty()) misuse("CUPTI's recording ends inside of a correlation that was pushed and not popped");
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t flag) {
  if (const CUptiResult refusal = refusal_of("cuptiActivityFlushAll")) return refusal;
  if (flag > CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) return CUPTI_ERROR_INVALID_PARAMETER;
  std::unique_lock lock(g_mutex);
  if (g_request == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  std::vector<std::vector<unsigned char>> records = std::move(g_records);
  g_records.clear();
  lock.unlock();  // who is called back asks for the records
  for (std::size_t i = 0; i < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most = 0, used = 0, count = 0;
    g_request(&buffer, &bytes, &most);
    if (buffer == nullptr) return CUPTI_SUCCESS;  // the records are dropped
    if (reinterpret_cast<std::uintptr_t>(buffer) % 8 != 0) misuse("CUPTI was given a buffer that is not aligned to 8");
    for (; i < records.size() && used + records[i].size() <= bytes && (most == 0 || count < most); ++i, ++count) {
      std::memcpy(buffer + used, records[i].data(), records[i].size());
      used += records[i].size();
    }
    if (count == 0) misuse("CUPTI was given a buffer that no record fits into");
    g_complete(nullptr, 0, buffer, bytes, used);
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes,
                                                CUpti_Activity** record) {
  std::size_t at = 0;
  if (*record != nullptr) {
    at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer);
    at += size_of((*record)->kind);
  }
  if (at >= valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return CUPTI_ERROR_INVALID_PARAMETER;
  t_external.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return CUPTI_ERROR_INVALID_PARAMETER;
  if (t_external.empty()) misuse("a correlation of CUPTI was popped that nobody pushed");
  if (last != nullptr) *last = t_external.back();
  t_external.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(std::uint64_t* timestamp) {
  *timestamp = now();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** words) {
  *words =
      result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}

}  // extern "C"
