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
/// Of threads that live at once, each has one of its own for what no longer fits.
constexpr std::size_t kLastEntries = 64;

std::size_t number_of_thread() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
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
  CrashNote crash_note;
  Entry entries[kMostEntries];
  struct {
    std::atomic<bool> has_begun{false};
    Entry entry;
  } last[kLastEntries];  // a thread's latest call that no longer fits
};

Journal::Journal() {
  void* const memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(fmt::format("cannot map memory for the kit: {}", std::strerror(errno)));
  // Zeros are what the members begin with; touching each entry would cost more than a short check does.
  page_ = static_cast<Page*>(memory);
}

Journal::~Journal() { ::munmap(page_, sizeof(Page)); }

Journal::Entry& Journal::begin(const CallFacts& facts) {
  page_->progress.fetch_add(1, std::memory_order_relaxed);
  page_->calls.fetch_add(1, std::memory_order_relaxed);
  if (facts.call == Call::kCreate) begin_anew();
  const std::uint64_t at = page_->count.fetch_add(1, std::memory_order_relaxed);
  auto& last = page_->last[number_of_thread() % kLastEntries];
  Entry& entry = at < kMostEntries ? page_->entries[at] : last.entry;
  entry.facts = facts;
  entry.is_done.store(false, std::memory_order_relaxed);
  if (at >= kMostEntries) last.has_begun.store(true, std::memory_order_relaxed);
  return entry;
}

void Journal::begin_anew() {
  page_->count.store(0, std::memory_order_relaxed);
  for (auto& last : page_->last) last.has_begun.store(false, std::memory_order_relaxed);
}

void Journal::end(Entry& entry, std::uint64_t address) {
  if (address != 0) entry.facts.address = address;
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

void Journal::clear() {
  page_->progress = page_->calls = 0;
  begin_anew();
  page_->has_seed = page_->judges_requests = false;
  page_->crash_note.signal = page_->crash_note.frame_count = page_->crash_note.named_count = 0;
  page_->crash_note.words[0] = 0;
  page_->crash_note.fault_address = 0;
}

bool Journal::judges_requests() const { return page_->judges_requests; }
std::uint64_t Journal::progress() const { return page_->progress.load(std::memory_order_relaxed); }
std::uint64_t Journal::calls() const { return page_->calls.load(std::memory_order_relaxed); }
bool Journal::has_seed() const { return page_->has_seed; }
std::uint64_t Journal::seed() const { return page_->seed; }
CrashNote& Journal::crash_note() { return page_->crash_note; }
const CrashNote& Journal::crash_note() const { return page_->crash_note; }

RunSettings Journal::settings() const {
  RunSettings settings;
  settings.capacity_bytes = page_->capacity_bytes;
  settings.fault = page_->fault;
  settings.manual_completion = page_->manual_completion;
  return settings;
}

// With several threads more than one call may be under way: the one that began first is the likeliest to be stuck.
const Journal::Entry* Journal::under_way() const {
  const std::uint64_t count = std::min<std::uint64_t>(page_->count.load(), kMostEntries);
  for (std::uint64_t i = 0; i < count; ++i)
    if (!page_->entries[i].is_done) return &page_->entries[i];
  for (const auto& last : page_->last)
    if (last.has_begun && !last.entry.is_done) return &last.entry;
  return nullptr;
}

std::string Journal::in_flight_name() const {
  const Entry* entry = under_way();
  return entry == nullptr ? std::string() : name_of(entry->facts.call);
}

std::string Journal::in_flight() const {
  const Entry* entry = under_way();
  return entry == nullptr ? std::string() : text_of(entry->facts);
}

Operations Journal::operations() const {
  const std::uint64_t count = page_->count.load();
  Operations history;
  if (count > kMostEntries) return history;
  std::map<std::uint64_t, std::uint32_t> slots;  // by address
  std::uint32_t next = 0;
  const auto add = [&](const CallFacts& entry, Operation::Kind kind, std::uint32_t slot) {
    history.push_back({.kind = kind,
                       .slot = slot,
                       .bytes = entry.bytes,
                       .alignment = std::max<std::size_t>(entry.alignment, 1),
                       .stream = entry.stream});
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const CallFacts& entry = page_->entries[i].facts;
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
