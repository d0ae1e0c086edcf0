// CUPTI by dlopen. It fills buffers with records of several kinds: a kernel knows the number of the call that queued
// it, and a record of its own says which number that call had for whoever made it.
//
// The records' oldest layouts are used, as far as CUDA 12 knows them: newer ones only append to them.
#include "activity_trace.h"

#include "kernels/libraries/library.h"

#if __has_include(<cupti.h>)
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <unordered_map>
#endif

namespace tenon::cuda {

ActivityTrace& ActivityTrace::shared() {
  static auto* const all = new ActivityTrace;  // CUPTI may hand over buffers until the process ends
  return *all;
}

#if __has_include(<cupti.h>)

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20, kBufferAlignment = 8;

constexpr CUpti_ActivityKind kRecorded[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    // The calls that correlations are told of: without them, CUPTI tells none.
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string demangled(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

const char* memory_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return "Pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return "Pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      return "Device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return "Array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return "Managed";
    default:
      return "Unknown";
  }
}

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "PtoP";
    default:
      return "";
  }
}

}  // namespace

struct ActivityTrace::Recording {
  /// An activity before its correlation is known.
  struct Found {
    TracedActivity activity;
    int device = 0;
    std::uint32_t call = 0;  ///< CUPTI's number of the call that queued it
  };

  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;

  std::mutex mutex;  // guards what follows
  std::string why_not;
  bool is_open = false;
  std::set<int> devices;       ///< that are recorded
  std::int64_t to_steady = 0;  ///< what CUPTI's clock is behind
  std::mutex found_mutex;      // guards what follows, which CUPTI's thread adds to
  std::vector<Found> found;
  std::unordered_map<std::uint32_t, std::uint64_t> correlations;  ///< by CUPTI's number of the call

  void open_locked() {
    is_open = true;
    const std::string name = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
    void* const library = open_library({name.c_str()}, why_not);
    if (library == nullptr) return;
    const auto look_up = [&]<class Function>(Function*& function, const char* symbol) {
      function = reinterpret_cast<Function*>(symbol_of(library, symbol));
      if (function == nullptr && why_not.empty()) why_not = name + " lacks " + symbol;
    };
    look_up(register_callbacks, "cuptiActivityRegisterCallbacks");
    look_up(enable, "cuptiActivityEnable");
    look_up(disable, "cuptiActivityDisable");
    look_up(flush, "cuptiActivityFlushAll");
    look_up(next_record, "cuptiActivityGetNextRecord");
    look_up(push, "cuptiActivityPushExternalCorrelationId");
    look_up(pop, "cuptiActivityPopExternalCorrelationId");
    look_up(timestamp, "cuptiGetTimestamp");
    look_up(result_string, "cuptiGetResultString");
    if (!why_not.empty()) return;
    why_not = words_of(register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  }

  std::string words_of(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return "";
    const char* words = nullptr;
    if (result_string(result, &words) != CUPTI_SUCCESS || words == nullptr) words = "unknown error";
    return std::string(call) + ": " + words + " (" + std::to_string(static_cast<int>(result)) + ")";
  }

  void disable_all_locked() {
    for (const CUpti_ActivityKind kind : kRecorded) disable(kind);
  }

  /// Empty; else why not, and nothing is recorded.
  std::string enable_all_locked() {
    std::uint64_t now = 0;
    const std::int64_t before = steady_ns();
    std::string why = words_of(timestamp(&now), "cuptiGetTimestamp");
    to_steady = before + (steady_ns() - before) / 2 - static_cast<std::int64_t>(now);
    for (const CUpti_ActivityKind kind : kRecorded) {
      if (!why.empty()) break;
      why = words_of(enable(kind), "cuptiActivityEnable");
    }
    if (!why.empty()) disable_all_locked();
    return why;
  }

  /// By its two clocks; where CUPTI could not read the device's, nothing is known of it.
  template <class Record>
  void add_locked(const Record& record, std::string name, std::size_t bytes) {
    if (record.start == 0 || record.end < record.start) return;
    found.push_back({.activity = {.name = std::move(name),
                                  .stream = record.streamId,
                                  .begin_ns = static_cast<std::int64_t>(record.start) + to_steady,
                                  .end_ns = static_cast<std::int64_t>(record.end) + to_steady,
                                  .bytes = bytes},
                     .device = static_cast<int>(record.deviceId),
                     .call = record.correlationId});
  }

  void read_locked(const CUpti_Activity* record) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel4*>(record);
        return add_locked(kernel, demangled(kernel.name), 0);
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy*>(record);
        return add_locked(copy,
                          std::string("Memcpy ") + copy_name(copy.copyKind) + " (" + memory_name(copy.srcKind) +
                              " -> " + memory_name(copy.dstKind) + ")",
                          copy.bytes);
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP*>(record);
        return add_locked(copy, "Memcpy PtoP (Device -> Device)", copy.bytes);
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset*>(record);
        return add_locked(fill, std::string("Memset (") + memory_name(static_cast<std::uint8_t>(fill.memoryKind)) + ")",
                          fill.bytes);
      }
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& call = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
        if (call.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
          correlations[call.correlationId] = call.externalId;
        return;
      }
      default:
        return;  // calls of the runtime and the driver
    }
  }

  static void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *bytes = *buffer == nullptr ? 0 : kBufferBytes;
    *most_records = 0;  // as many as fit
  }
  static void take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer, std::size_t /*bytes*/,
                          std::size_t used_bytes) {
    Recording& recording = *shared().recording_;
    try {
      const std::lock_guard lock(recording.found_mutex);
      CUpti_Activity* record = nullptr;
      while (recording.next_record(buffer, used_bytes, &record) == CUPTI_SUCCESS) recording.read_locked(record);
    } catch (...) {  // no memory: the rest of the buffer is lost, the program goes on
    }
    std::free(buffer);
  }
};

ActivityTrace::ActivityTrace() : recording_(std::make_unique<Recording>()) {}

std::string ActivityTrace::start(int device) {
  Recording& recording = *recording_;
  const std::lock_guard lock(recording.mutex);
  if (!recording.is_open) recording.open_locked();
  if (!recording.why_not.empty()) return recording.why_not;
  if (recording.devices.empty())
    if (std::string why = recording.enable_all_locked(); !why.empty()) return why;
  recording.devices.insert(device);
  return "";
}

void ActivityTrace::push(std::uint64_t correlation) noexcept {
  recording_->push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, correlation);
}
void ActivityTrace::pop() noexcept {
  std::uint64_t last = 0;
  recording_->pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

std::vector<TracedActivity> ActivityTrace::stop(int device) {
  Recording& recording = *recording_;
  const std::lock_guard lock(recording.mutex);
  if (recording.devices.erase(device) == 0) return {};
  // What has ended is handed over before disabling: CUPTI may drop what is in buffers of kinds that are off.
  recording.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (recording.devices.empty()) recording.disable_all_locked();
  std::vector<TracedActivity> activities;
  {
    const std::lock_guard guard(recording.found_mutex);
    std::vector<Recording::Found> others;
    for (Recording::Found& found : recording.found) {
      if (found.device != device) {
        others.push_back(std::move(found));
        continue;
      }
      const auto call = recording.correlations.find(found.call);
      found.activity.correlation = call == recording.correlations.end() ? 0 : call->second;
      activities.push_back(std::move(found.activity));
    }
    recording.found = std::move(others);
    if (recording.devices.empty()) {
      recording.found.clear();
      recording.correlations.clear();
    }
  }
  std::ranges::stable_sort(activities, {}, &TracedActivity::begin_ns);
  return activities;
}

#else

struct ActivityTrace::Recording {};
ActivityTrace::ActivityTrace() = default;
std::string ActivityTrace::start(int) {
  return "this plugin was built without CUPTI's headers, which the CUDA Toolkit has";
}
void ActivityTrace::push(std::uint64_t) noexcept {}
void ActivityTrace::pop() noexcept {}
std::vector<TracedActivity> ActivityTrace::stop(int) { return {}; }

#endif

}  // namespace tenon::cuda
