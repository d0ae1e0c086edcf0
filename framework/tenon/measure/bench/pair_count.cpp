// An anonymous shared mapping, which a fork keeps.
#include <tenon/measure/bench/pair_count.h>

#include <tenon/core/error.h>

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace tenon::measure {

namespace {

BenchPairs own;
BenchPairs* used = &own;

}  // namespace

std::uint64_t BenchPairs::done() const noexcept {
  std::uint64_t sum = check_.event.load(std::memory_order_relaxed);
  for (const PairCount& count : counts_) sum += count.done();
  return sum;
}

BenchPairs& bench_pairs() noexcept { return *used; }

PairPage::PairPage() {
  void* const memory = ::mmap(nullptr, sizeof(BenchPairs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(std::string("no memory for the counts of a bench: ") + std::strerror(errno));
  pairs_ = new (memory) BenchPairs;
}

PairPage::~PairPage() { ::munmap(pairs_, sizeof(BenchPairs)); }

void PairPage::use() const noexcept { used = pairs_; }

}  // namespace tenon::measure
