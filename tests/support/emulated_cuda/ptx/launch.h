// One launch of a kernel: its blocks one after the other, the threads of a block in turns.
#pragma once

#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/ptx/access_log.h"
#include "support/emulated_cuda/ptx/module.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::emulated_cuda::ptx {

struct Dimensions {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// What is known of a byte of shared memory.
inline constexpr unsigned char kUnwritten = 0, kWritten = 1, kOnItsWay = 2;

struct LaunchConfig {
  Dimensions grid, block;
  std::size_t dynamic_shared_bytes = 0;
  std::size_t most_dynamic_shared_bytes = 0;  ///< what the kernel was allowed beyond the common limit
  std::uint64_t seed = 0;                     ///< 0: blocks and threads in their order; else drawn
};

class Launch {
 public:
  /// `variables`: where those of the module lie on the device.
  Launch(Machine& machine, const Context& context, const Module& module, const Function& kernel,
         const LaunchConfig& config, std::vector<unsigned char> params, std::vector<Address> variables);
  void run();

 private:
  enum class State { kReady, kAtBarrier, kAtWarp, kExited };
  struct Frame {
    const Function* function = nullptr;
    std::size_t at = 0;
    std::vector<std::uint64_t> words;  ///< registers, then constants
    std::vector<unsigned char> params;
    std::vector<unsigned char> local;
  };
  /// Bytes on their way to shared memory.
  struct Copy {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    std::array<unsigned char, 16> data{};
    const Instruction* instruction = nullptr;
  };
  struct Thread {
    std::uint32_t index = 0;
    Dimensions id;
    State state = State::kReady;
    std::vector<Frame> frames;
    std::uint64_t* words = nullptr;  ///< of the last frame
    std::uint64_t carry = 0;
    const Instruction* waits_at = nullptr;
    std::vector<Copy> copies;                  ///< since the last commit
    std::vector<std::vector<Copy>> committed;  ///< groups, the oldest first
  };

  /// Of the launch before: their memory is used again. The machine's lock guards them.
  static std::vector<Thread>& spare_threads();
  void begin_block(std::uint64_t block);
  void fill_words(Thread& thread) const;
  void enter(const Thread& thread);
  void run_block();
  void run_thread(Thread& thread);
  std::size_t run_steps(Thread& thread, Frame& frame, std::size_t& count) const;
  /// False: the thread stops here.
  bool step(Thread& thread, const Instruction& instruction);
  bool release_warps();
  bool release_barrier();
  void reduce_at_barrier(const Instruction& instruction);
  void run_warp_operation(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction);
  void shuffle(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction);
  void vote(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction);
  std::array<Thread*, 32> lanes_of(std::uint32_t warp) const;
  /// The 32 threads of a warp by lane, of which none may be missing.
  std::array<Thread*, 32> whole_warp(std::uint32_t warp, const Instruction& instruction);
  void load_matrices(std::uint32_t warp, const Instruction& instruction);
  void multiply_matrices(std::uint32_t warp, const Instruction& instruction);
  void copy(Thread& thread, const Instruction& instruction);
  void wait_for_copies(Thread& thread, const Instruction& instruction);
  void finish_copies(Thread& thread, const std::vector<Copy>& copies);
  void expect_no_copies(const Thread& thread) const;

  // These two are most of what an instruction costs: inline.
  std::uint64_t value(const Thread& thread, const Operand& operand) const {
    return operand.kind == Operand::Kind::kRegister ? thread.words[operand.value] : named(thread, operand);
  }
  void set(Thread& thread, const Operand& operand, std::uint64_t value) const { thread.words[operand.value] = value; }
  std::uint64_t named(const Thread& thread, const Operand& operand) const;
  std::uint64_t special(const Thread& thread, std::uint64_t which) const;
  void load(Thread& thread, const Instruction& instruction);
  void store(Thread& thread, const Instruction& instruction);
  void atomic(Thread& thread, const Instruction& instruction);
  void call(Thread& thread, const Instruction& instruction);
  /// False: it was the kernel that returned.
  bool give_back(Thread& thread);
  unsigned char* bytes_at(Thread& thread, const Instruction& instruction, std::size_t bytes, Access access);
  unsigned char* shared_bytes(Thread& thread, const Instruction& instruction, std::uint64_t address, std::size_t bytes,
                              Access access);
  unsigned char* global_bytes(const Thread& thread, const Instruction& instruction, Address address, std::size_t bytes);
  void check_race(AccessLog& log, const Thread& thread, const Instruction& instruction, std::uint64_t address,
                  std::size_t bytes, Access access, const char* memory);
  [[noreturn]] void stop(const Thread& thread, const Instruction& instruction, const std::string& what) const;
  std::string place(const Thread& thread, const Instruction& instruction) const;

  Machine& machine_;
  const Context& context_;
  const Module& module_;
  const Function& kernel_;
  const LaunchConfig config_;
  const std::vector<unsigned char> params_;
  const std::vector<Address> variables_;
  AccessLog global_log_{AccessLog::Of::kLaunch};

  // Of the block that runs.
  std::uint32_t block_ = 0;
  Dimensions block_id_;
  std::vector<Thread> threads_;  ///< in the order of their turns
  std::vector<Thread*> by_index_;
  Where now_;  ///< of the thread that runs
  std::vector<unsigned char> shared_;
  std::vector<unsigned char> shared_written_;  ///< of each byte: kUnwritten, kWritten or kOnItsWay
  AccessLog shared_log_{AccessLog::Of::kBlocks};
  std::uint32_t block_phase_ = 0;
  std::vector<std::uint32_t> warp_phases_;
  std::uint32_t fences_ = 0;
  const Extent* last_extent_ = nullptr;
};

/// What the device cannot launch: too many threads, too much shared memory. Empty: it can.
std::string why_not_launchable(const Function& kernel, const LaunchConfig& config);

}  // namespace tenon::emulated_cuda::ptx
