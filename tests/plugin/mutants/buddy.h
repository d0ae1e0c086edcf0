// A buddy allocator: chunks of a power of two, halved until a block fits, halves merged again when both are free. With
// the option `flaw` it breaks one promise of the contract: see flaws.h.
#pragma once

#include <tenon/plugin/plugin.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {

class Buddy final : public Allocator {
 public:
  static OptionSchema options();
  explicit Buddy(const AllocatorContext& context);
  ~Buddy() override;

  Block allocate(const Request& request) override;
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;

 private:
  /// Physical memory of a chunk that is mapped.
  struct Pages {
    MemorySource& source;
    Physical physical;
    std::size_t bytes;
    ~Pages() { source.destroy(physical, bytes); }
  };
  struct Chunk {
    std::size_t bytes = 0;
    std::shared_ptr<Pages> pages;  ///< none where it was acquired
    StreamRef stream;
    std::map<std::size_t, std::set<std::size_t>> free;  ///< by size: offsets
    std::size_t free_bytes = 0;
  };
  struct Record {
    std::uintptr_t chunk = 0;
    std::size_t offset = 0, bytes = 0, requested_bytes = 0;
    std::set<StreamRef> users;  ///< besides the chunk's stream
    std::vector<Ticket> tickets;
    std::thread::id owner;
    bool is_waiting = false;
  };
  using Chunks = std::map<std::uintptr_t, Chunk>;
  using Records = std::map<std::uintptr_t, std::unique_ptr<Record>>;  ///< by address

  bool has(const char* flaw) const { return flaw_ == flaw; }
  bool is_turn(const char* flaw, int every) { return has(flaw) && ++turns_ % every == 0 && turns_ > after_; }
  void misbehave(const Request& request);
  Record* take(std::size_t bytes, StreamRef stream);
  Record* take_from(Chunks::iterator chunk, std::size_t bytes);
  bool grow(std::size_t bytes, StreamRef stream);
  void* map_chunk(std::size_t bytes, std::shared_ptr<Pages>& pages);
  std::size_t release(std::uintptr_t address, Chunk& chunk, std::size_t too_many = 0);
  void give_back(Records::iterator record);
  void reclaim();
  int recurse(int depth);

  MemorySource& source_;
  const std::size_t chunk_bytes_;
  const std::string flaw_;
  const std::int64_t after_;
  int turns_ = 0;
  int counted_ = 0;
  std::int64_t retries_ = 0;
  std::mutex mutex_;
  std::vector<std::size_t> log_;
  std::weak_ptr<Pages> last_pages_;
  Chunks chunks_;
  Records records_;
  std::vector<std::unique_ptr<Record>> doubled_;  ///< of live blocks whose place a flaw gave to another
};

}  // namespace tenon::test
