// What a run of the kit covers: which checks, whose speed, which options; and the figures in what it says.
#include <tenon/conformance/conformance.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>

#include <gmock/gmock.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Keeps what is freed, by size and stream, and gives it back when it is asked to: not when the device has no more.
class Hoarder : public Allocator {
 public:
  explicit Hoarder(MemorySource& source) : source_(source) {}
  ~Hoarder() override {
    source_.synchronize();
    for (const auto& [address, bytes] : all_) source_.release(address, bytes);
  }

  Block allocate(const Request& request) override {
    const std::size_t bytes = size_of(request.bytes);
    std::vector<void*>& kept = kept_[{bytes, request.stream.id}];
    void* address = kept.empty() ? source_.acquire(bytes) : kept.back();
    if (address == nullptr) refuse(request);
    if (!kept.empty()) kept.pop_back();
    all_[address] = bytes;
    return {.data = address, .bytes = bytes, .request = request};
  }
  void record_use(const Block& block, StreamRef stream) override {
    if (stream != block.request.stream) used_elsewhere_.insert(block.data);
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (used_elsewhere_.erase(block.data) != 0 || last_use != block.request.stream) source_.synchronize();
    kept_[{block.bytes, block.request.stream.id}].push_back(block.data);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    source_.synchronize();
    std::size_t cached = cached_bytes(), given = 0;
    for (auto& [key, kept] : kept_) {
      for (; !kept.empty() && cached > keep_bytes; kept.pop_back()) {
        source_.release(kept.back(), key.first);
        all_.erase(kept.back());
        cached -= key.first;
        given += key.first;
      }
    }
    return given;
  }

 protected:
  virtual std::size_t size_of(std::size_t bytes) const { return align_up(std::max<std::size_t>(bytes, 1), 512); }
  [[noreturn]] virtual void refuse(const Request& request) { throw OutOfMemory({.requested_bytes = request.bytes}); }
  std::size_t cached_bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, kept] : kept_) sum += key.first * kept.size();
    return sum;
  }

 private:
  MemorySource& source_;
  std::map<void*, std::size_t> all_;
  std::set<void*> used_elsewhere_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<void*>> kept_;
};

template <class Policy>
AllocatorInfo info_of() {
  return {.name = "tried",
          .create = [](const AllocatorContext& context) { return std::make_unique<Policy>(context.source); }};
}

std::vector<std::string> names_of(const Report& report) {
  std::vector<std::string> names;
  for (const CheckResult& check : report.checks) names.push_back(check.name);
  return names;
}

TEST(Kit, RunsTheChecksWhoseNameHasTheWordButThoseToLeaveOut) {
  const Report report =
      run(info_of<Hoarder>(), nullptr,
          {.histories = 2, .history_length = 20, .only = "ali", .skip = {"takes_frees_from_other_threads"}});
  EXPECT_THAT(names_of(report), ElementsAre("aligns"));
  const Report without = run(info_of<Hoarder>(), nullptr,
                             {.histories = 2, .history_length = 20, .only = "s_truly", .skip = {"reports_truly"}});
  EXPECT_THAT(names_of(without), ElementsAre());
  EXPECT_FALSE(without.passed()) << "nothing was checked";
  EXPECT_EQ(without.left_out, 0U) << "it was not to be run";
}

TEST(Kit, MeasuresNoSpeedWhereNobodyAsksOrThereIsNoProcessForIt) {
  for (const bool is_isolated : {false, true}) {
    const Report report = run(info_of<Hoarder>(), nullptr,
                              {.histories = 2,
                               .history_length = 20,
                               .only = "aligns",
                               .is_isolated = is_isolated,
                               .measures_speed = !is_isolated});
    EXPECT_FALSE(report.speed.has_value()) << is_isolated;
  }
}

/// A number that children of this process share.
class SharedCount {
 public:
  SharedCount()
      : count_(new (::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                           0)) std::atomic<int>(0)) {}
  ~SharedCount() { ::munmap(count_, sizeof *count_); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  std::atomic<int>& operator*() const { return *count_; }

 private:
  std::atomic<int>* count_;
};

TEST(Kit, AChildEndsWithTheProcessThatAskedForIt) {
  const SharedCount child;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that it is ours to wait for
  const pid_t kit = ::fork();
  ASSERT_GE(kit, 0);
  if (kit == 0) {
    const AllocatorInfo info{.name = "sleeper", .create = [&](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                               ::alarm(20);  // where nobody else ends it
                               *child = ::getpid();
                               while (true) ::pause();
                             }};
    run(info, nullptr, {.only = "aligns"});
    ::_exit(0);
  }
  int status = 0;
  while (*child == 0 && ::waitpid(kit, &status, WNOHANG) == 0) ::usleep(1000);
  ASSERT_NE(*child, 0) << "the kit ended before it began";
  ::kill(kit, SIGKILL);
  ::waitpid(kit, &status, 0);
  ASSERT_EQ(::waitpid(*child, &status, 0), *child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/// Takes as much as leaves room for what the checks need, and for no block more.
class Lavish : public Hoarder {
 public:
  using Hoarder::Hoarder;

 protected:
  std::size_t size_of(std::size_t bytes) const override {
    return bytes > 30 * MiB ? 128 * MiB : bytes > 512 * KiB ? 80 * MiB : 17 * MiB;
  }
};
class TooLavish final : public Lavish {
 public:
  using Lavish::Lavish;

 protected:
  std::size_t size_of(std::size_t bytes) const override {
    return bytes == 30 * MiB ? 90 * MiB : Lavish::size_of(bytes);
  }
};

TEST(Untestable, IsOnlyWhatHasNoRoomForTheBlocksThatChecksCountOn) {
  const OptionSchema none;
  EXPECT_EQ(why_untestable(info_of<Lavish>(), Options(none)), "");
  EXPECT_EQ(why_untestable(info_of<TooLavish>(), Options(none)), "3 x 30.0 MiB do not fit on a device of 256.0 MiB");
}

TEST(Untestable, IsWhatItsConstructorRefuses) {
  const OptionSchema none;
  const AllocatorInfo picky{.name = "picky", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                              throw ConfigError("chunk: not so small");
                            }};
  EXPECT_EQ(why_untestable(picky, Options(none)), "chunk: not so small");
  const AllocatorInfo broken{.name = "broken", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                               throw Error("nothing works");
                             }};
  EXPECT_EQ(why_untestable(broken, Options(none)), "") << "the checks have to say that";
}

TEST(Untestable, IsNotWhatHangsInItsConstructor) {
  const OptionSchema none;
  const AllocatorInfo stuck{.name = "stuck", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                              while (true) ::pause();
                            }};
  EXPECT_EQ(why_untestable(stuck, Options(none)), "") << "the checks have to say that";
}

std::string failure_of(const AllocatorInfo& info, const std::string& check) {
  const Report report = run(info, nullptr, {.histories = 2, .only = check});
  EXPECT_EQ(report.checks.size(), 1U);
  return report.checks.empty() ? "" : report.checks.front().failure;
}

TEST(Kit, SaysWhatIsReservedWhereCachedMemoryIsNotReleased) {
  EXPECT_THAT(failure_of(info_of<Hoarder>(), "retries_before_out_of_memory"),
              HasSubstr("5 x 200.0 MiB on stream 1, all freed, then 0 x 200.0 MiB on stream 2 and OutOfMemory, with "
                        "1000.0 MiB reserved; a fresh allocator serves 5 of them"));
}

/// Takes the sum of what it keeps for the largest piece of it.
class Boastful final : public Hoarder {
 public:
  using Hoarder::Hoarder;
  void report(PolicyStats& stats) const override { stats.largest_free_bytes = cached_bytes(); }
};

TEST(Kit, ALargestFreeBlockIsAskedForWhileOthersAreHandedOut) {
  EXPECT_THAT(
      failure_of(info_of<Boastful>(), "reports_truly"),
      ContainsRegex("report\\(\\) gives largest_free_bytes as [0-9]+, and a request for as much went to the device"));
}

/// Counts its blocks and their bytes as the host does, and nothing of what was asked for.
class Forgetful final : public Hoarder {
 public:
  using Hoarder::Hoarder;
  Block allocate(const Request& request) override {
    const Block block = Hoarder::allocate(request);
    add(blocks_, 1);
    add(bytes_, static_cast<std::int64_t>(block.bytes));
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    remove(blocks_, 1);
    remove(bytes_, static_cast<std::int64_t>(block.bytes));
    Hoarder::deallocate(block, last_use);
  }
  void report(PolicyStats& stats) const override {
    stats.has_pools = true;
    stats.allocation[0] = blocks_;
    stats.allocated_bytes[0] = bytes_;
  }

 private:
  static void add(Stat& stat, std::int64_t amount) {
    stat.current += amount;
    stat.allocated += amount;
    stat.peak = std::max(stat.peak, stat.current);
  }
  static void remove(Stat& stat, std::int64_t amount) {
    stat.current -= amount;
    stat.freed += amount;
  }

  Stat blocks_, bytes_;
};

TEST(Kit, HoldsEveryFigureOfThePolicyAgainstTheLedger) {
  EXPECT_THAT(failure_of(info_of<Forgetful>(), "counts"),
              HasSubstr("the policy reports requested_bytes.all.current as 0, the ledger beside it says "));
}

/// Gives large blocks back at once, when the streams that used them have got there; the others may go on.
class Prompt final : public Allocator {
 public:
  explicit Prompt(MemorySource& source) : source_(source), small_(source) {}
  Block allocate(const Request& request) override {
    if (request.bytes <= 64 * KiB) return small_.allocate(request);
    const std::size_t bytes = align_up(request.bytes, 512);
    void* const address = source_.acquire(bytes);
    if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    return {.data = address, .bytes = bytes, .request = request};
  }
  void record_use(const Block& block, StreamRef stream) override {
    small_.record_use(block, stream);
    users_.emplace(block.data, stream.id);
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (block.request.bytes <= 64 * KiB) {
      users_.erase(block.data);
      return small_.deallocate(block, last_use);
    }
    wait_for(block.request.stream);
    wait_for(last_use);
    const auto [first, end] = users_.equal_range(block.data);
    for (auto user = first; user != end; ++user) wait_for({user->second});
    users_.erase(first, end);
    source_.release(block.data, block.bytes);
  }
  std::size_t trim(std::size_t keep_bytes) override { return small_.trim(keep_bytes); }

 private:
  void wait_for(StreamRef stream) { source_.wait(source_.mark(stream)); }

  MemorySource& source_;
  Hoarder small_;
  std::multimap<void*, std::uint64_t> users_;
};

TEST(Kit, LetsMemoryGoBackWhileStreamsUseOtherBlocks) {
  EXPECT_EQ(failure_of(info_of<Prompt>(), "respects_streams"), "");
}

/// Hands out addresses that nobody gave it.
class Adrift final : public Allocator {
 public:
  explicit Adrift(MemorySource&) {}
  Block allocate(const Request& request) override {
    next_ += 64 * MiB;
    return {.data = reinterpret_cast<void*>(next_), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}

 private:
  std::uintptr_t next_ = 0x700000000000;
};

TEST(Kit, NamesTheAddressesThatTheSourceDidNotSupply) {
  EXPECT_THAT(
      failure_of(info_of<Adrift>(), "never_overlaps"),
      ContainsRegex("allocate\\([0-9]+\\) gave \\[0x7[0-9a-f]{11}, 0x7[0-9a-f]{11}\\), which the source did not"));
}

/// Has no other word for a source that fails.
class Blunt final : public Hoarder {
 public:
  using Hoarder::Hoarder;

 protected:
  [[noreturn]] void refuse(const Request&) override { throw Error("the device gives nothing"); }
};

TEST(Kit, AllowsAnyErrorOfACallWhoseSourceFailsTheFirstOneToo) {
  EXPECT_EQ(failure_of(info_of<Blunt>(), "survives_one_failure"), "");
}

/// Takes memory when it is made, and dies where there is none.
class Hasty final : public Hoarder {
 public:
  explicit Hasty(MemorySource& source) : Hoarder(source) {
    void* const address = source.acquire(1 * MiB);
    if (address == nullptr) std::abort();
    source.release(address, 1 * MiB);
  }
};

TEST(Kit, SaysWhichCallFailedInALineOfItsOwnWhereTheConstructorAloneDoesIt) {
  EXPECT_THAT(failure_of(info_of<Hasty>(), "survives_one_failure"),
              AllOf(HasSubstr("\n  when call 0 to the source fails"), Not(HasSubstr("shortest history"))));
}

}  // namespace
}  // namespace tenon::conformance
