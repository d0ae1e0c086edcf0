// The journal in shared memory: plain numbers, one writer at a time for each entry.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>

#include <tenon/core/error.h>

#include <sys/mman.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>

namespace tenon::conformance {

namespace {

constexpr std::size_t kMostEntries = 65536;
constexpr std::size_t kMostFrames = 48;

const char* name_of(Call call) {
  constexpr const char* kNames[] = {"the constructor", "allocate", "deallocate", "record_use",  "trim",
                                    "complete",        "walk",     "report",     "reset_stats", "check_invariants",
                                    "the destructor"};
  return kNames[static_cast<int>(call)];
}

}  // namespace

struct Journal::Page {
  std::atomic<std::uint64_t> progress{0}, calls{0}, count{0};
  std::atomic<bool> has_seed{false};
  std::uint64_t seed = 0;
  std::size_t capacity_bytes = 0;
  Fault fault;
  bool manual_completion = false;
  bool judges_requests = false;
  char last_words[512] = {};
  std::atomic<int> frame_count{0};
  void* frames[kMostFrames] = {};
  std::uint64_t fault_address = 0;
  Entry entries[kMostEntries + 1];  // the last one stands for all that no longer fit
};

Journal::Journal() {
  void* const memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(fmt::format("cannot map memory for the kit: {}", std::strerror(errno)));
  // Zeros are what the members begin with; touching each entry would cost more than a short check does.
  page_ = static_cast<Page*>(memory);
}

Journal::~Journal() { ::munmap(page_, sizeof(Page)); }

Journal::Entry& Journal::begin(Call call, std::uint64_t bytes, std::uint64_t stream, std::uint64_t address,
                               std::size_t alignment) {
  page_->progress.fetch_add(1, std::memory_order_relaxed);
  page_->calls.fetch_add(1, std::memory_order_relaxed);
  if (call == Call::kCreate) page_->count.store(0, std::memory_order_relaxed);
  const std::uint64_t at = std::min<std::uint64_t>(page_->count.fetch_add(1, std::memory_order_relaxed), kMostEntries);
  Entry& entry = page_->entries[at];
  entry.call = call;
  entry.bytes = bytes;
  entry.stream = stream;
  entry.address = address;
  entry.alignment = static_cast<std::uint32_t>(alignment);
  entry.is_done.store(false, std::memory_order_relaxed);
  return entry;
}

void Journal::end(Entry& entry, std::uint64_t address) {
  if (address != 0) entry.address = address;
  entry.is_done.store(true, std::memory_order_relaxed);
  page_->progress.fetch_add(1, std::memory_order_relaxed);
}

void Journal::note_seed(std::uint64_t seed) {
  page_->seed = seed;
  page_->has_seed = true;
}

void Journal::note_settings(const RunSettings& settings) {
  page_->capacity_bytes = settings.capacity_bytes;
  page_->fault = settings.fault;
  page_->manual_completion = settings.manual_completion;
  page_->judges_requests = std::ranges::find(settings.only, cause::kRequest) != settings.only.end();
}

void Journal::note_last_words(const char* words) noexcept {
  std::strncpy(page_->last_words, words, sizeof page_->last_words - 1);
}

void Journal::note_frames(void* const* frames, int count, std::uint64_t fault_address) noexcept {
  const int kept = std::min(count, static_cast<int>(kMostFrames));
  std::copy_n(frames, kept, page_->frames);
  page_->fault_address = fault_address;
  page_->frame_count = kept;
}

void Journal::clear() {
  page_->progress = page_->calls = page_->count = 0;
  page_->has_seed = page_->judges_requests = false;
  page_->last_words[0] = 0;
  page_->frame_count = 0;
  page_->fault_address = 0;
}

bool Journal::judges_requests() const { return page_->judges_requests; }
std::uint64_t Journal::progress() const { return page_->progress.load(std::memory_order_relaxed); }
std::uint64_t Journal::calls() const { return page_->calls.load(std::memory_order_relaxed); }
bool Journal::has_seed() const { return page_->has_seed; }
std::uint64_t Journal::seed() const { return page_->seed; }
std::string Journal::last_words() const { return page_->last_words; }
std::uint64_t Journal::fault_address() const { return page_->fault_address; }
std::vector<void*> Journal::frames() const {
  return std::vector<void*>(page_->frames, page_->frames + page_->frame_count.load());
}

RunSettings Journal::settings() const {
  RunSettings settings;
  settings.capacity_bytes = page_->capacity_bytes;
  settings.fault = page_->fault;
  settings.manual_completion = page_->manual_completion;
  return settings;
}

// With several threads more than one call may be under way: the one that began first is the likeliest to be stuck.
const Journal::Entry* Journal::under_way() const {
  const std::uint64_t count = std::min<std::uint64_t>(page_->count.load(), kMostEntries + 1);
  for (std::uint64_t i = 0; i < count; ++i)
    if (!page_->entries[i].is_done) return &page_->entries[i];
  return nullptr;
}

std::string Journal::in_flight_name() const {
  const Entry* entry = under_way();
  return entry == nullptr ? std::string() : name_of(entry->call);
}

std::string Journal::in_flight() const {
  const Entry* entry = under_way();
  if (entry == nullptr) return {};
  switch (entry->call) {
    case Call::kAllocate:
      return fmt::format("allocate({} bytes, alignment {}, stream {})", entry->bytes, entry->alignment, entry->stream);
    case Call::kDeallocate:
      return fmt::format("deallocate({:#x}, last used on stream {})", entry->address, entry->stream);
    case Call::kRecordUse:
      return fmt::format("record_use({:#x}, stream {})", entry->address, entry->stream);
    case Call::kTrim:
      return fmt::format("trim({})", entry->bytes);
    case Call::kCreate:
    case Call::kDestroy:
      return name_of(entry->call);
    default:
      return fmt::format("{}()", name_of(entry->call));
  }
}

Operations Journal::operations() const {
  const std::uint64_t count = page_->count.load();
  Operations history;
  if (count > kMostEntries) return history;
  std::map<std::uint64_t, std::uint32_t> slots;  // by address
  std::uint32_t next = 0;
  const auto add = [&](const Entry& entry, Operation::Kind kind, std::uint32_t slot) {
    history.push_back({.kind = kind,
                       .slot = slot,
                       .bytes = entry.bytes,
                       .alignment = std::max<std::size_t>(entry.alignment, 1),
                       .stream = entry.stream});
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const Entry& entry = page_->entries[i];
    const auto slot = slots.find(entry.address);
    if (entry.call == Call::kAllocate) {
      if (entry.address != 0) slots[entry.address] = next;
      add(entry, Operation::kAllocate, next++);
    } else if (entry.call == Call::kTrim) {
      add(entry, Operation::kTrim, 0);
    } else if (entry.call == Call::kComplete) {
      add(entry, Operation::kComplete, 0);
    } else if (slot == slots.end()) {
      continue;
    } else if (entry.call == Call::kDeallocate) {
      add(entry, Operation::kFree, slot->second);
      slots.erase(slot);
    } else if (entry.call == Call::kRecordUse) {
      add(entry, Operation::kUse, slot->second);
    }
  }
  return history;
}

}  // namespace tenon::conformance
