// Blocks and threads: a thread runs until it ends or waits for others; then those who have come go on together.
#include "support/emulated_cuda/ptx/launch.h"

#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::size_t kMostSteps = std::size_t{1} << 26;  // of a thread on end: some ten seconds
constexpr std::size_t kSharedLimit = 48 * 1024;
constexpr unsigned char kPoison = 0xA5;
constexpr std::uint64_t kPoisonedWord = 0xA5A5A5A5A5A5A5A5U;

Dimensions at_index(std::uint64_t index, const Dimensions& of) {
  return {static_cast<std::uint32_t>(index % of.x), static_cast<std::uint32_t>(index / of.x % of.y),
          static_cast<std::uint32_t>(index / of.x / of.y)};
}

std::string shown(const Dimensions& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

}  // namespace

std::vector<Launch::Thread>& Launch::spare_threads() {
  static auto& spare = *new std::vector<Thread>;  // launches may be queued as long as the program runs
  return spare;
}

std::string why_not_launchable(const Function& kernel, const LaunchConfig& config) {
  const Dimensions& block = config.block;
  if (config.grid.count() == 0 || block.count() == 0) return "it has no threads";
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > kernel.max_threads)
    return "its blocks have " + std::to_string(block.count()) + " threads";
  if (config.grid.x > 0x7fffffffU || config.grid.y > 65535 || config.grid.z > 65535)
    return "its grid is " + shown(config.grid);
  if (kernel.shared_bytes + config.dynamic_shared_bytes > kSharedLimit &&
      config.dynamic_shared_bytes > config.most_dynamic_shared_bytes)
    return "it wants " + std::to_string(kernel.shared_bytes + config.dynamic_shared_bytes) + " bytes of shared memory";
  return {};
}

Launch::Launch(Machine& machine, const Context& context, const Module& module, const Function& kernel,
               const LaunchConfig& config, std::vector<unsigned char> params, std::vector<Address> variables)
    : machine_(machine),
      context_(context),
      module_(module),
      kernel_(kernel),
      config_(config),
      params_(std::move(params)),
      variables_(std::move(variables)) {}

/// What the thread accesses from now on, it accesses here.
void Launch::enter(const Thread& thread) {
  now_ = Where(block_, thread.index, block_phase_, warp_phases_[thread.index / kWarp], fences_);
}

std::string Launch::place(const Thread& thread, const Instruction& instruction) const {
  std::string text = "kernel " + kernel_.name + ", block " + shown(block_id_) + ", thread " + shown(thread.id);
  const auto file = module_.files.find(instruction.file);
  if (file != module_.files.end()) text += ", " + file->second + ":" + std::to_string(instruction.line);
  return text + ": " + instruction.opcode;
}

void Launch::stop(const Thread& thread, const Instruction& instruction, const std::string& what) const {
  misuse(place(thread, instruction) + " " + what);
}

void Launch::run() {
  threads_ = std::move(spare_threads());
  std::vector<std::uint64_t> blocks(config_.grid.count());
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  std::mt19937_64 random(config_.seed);
  if (config_.seed != 0) std::shuffle(blocks.begin(), blocks.end(), random);
  for (const std::uint64_t block : blocks) {
    begin_block(block);
    if (config_.seed != 0) {
      // A thread knows its index: only the turn that it gets is drawn.
      std::shuffle(threads_.begin(), threads_.end(), random);
    }
    run_block();
  }
  spare_threads() = std::move(threads_);
  if (!machine_.queue.order.is_looking()) return;
  for (const AccessLog::Span& span : global_log_.spans()) {
    if (machine_.space.is_device(reinterpret_cast<void*>(span.address)))
      machine_.queue.use_by_running("kernel " + kernel_.name, span.address, span.bytes, span.writes);
  }
}

void Launch::begin_block(std::uint64_t block) {
  block_ = static_cast<std::uint32_t>(block);
  block_id_ = at_index(block, config_.grid);
  const std::size_t dynamic_at = (kernel_.shared_bytes + 15) / 16 * 16;
  shared_.assign(dynamic_at + config_.dynamic_shared_bytes, kPoison);
  shared_written_.assign(shared_.size(), kUnwritten);
  block_phase_ = 0;
  fences_ = 0;
  const auto count = static_cast<std::uint32_t>(config_.block.count());
  warp_phases_.assign((count + kWarp - 1) / kWarp, 0);
  threads_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Thread& thread = threads_[i];
    thread.index = i;
    thread.id = at_index(i, config_.block);
    thread.state = State::kReady;
    thread.carry = 0;
    thread.copies.clear();
    thread.committed.clear();
    thread.frames.resize(1);
    Frame& frame = thread.frames[0];
    frame.function = &kernel_;
    frame.at = 0;
    fill_words(thread);
    frame.params.assign(kernel_.param_bytes, kPoison);
    std::copy(params_.begin(), params_.end(), frame.params.begin());
    frame.local.assign(kernel_.local_bytes, kPoison);
  }
}

/// Registers of the last frame that nobody wrote are poisoned, constants are what they are.
void Launch::fill_words(Thread& thread) const {
  Frame& frame = thread.frames.back();
  const Function& function = *frame.function;
  frame.words.resize(function.registers + function.constants.size());
  thread.words = frame.words.data();
  for (const std::uint32_t word : function.poisoned) thread.words[word] = kPoisonedWord;
  std::uint64_t* word = thread.words + function.registers;
  for (const Operand& constant : function.constants) *word++ = named(thread, constant);
}

void Launch::run_block() {
  by_index_.resize(threads_.size());
  for (Thread& thread : threads_) by_index_[thread.index] = &thread;
  while (true) {
    for (Thread& thread : threads_) {
      if (thread.state == State::kReady) run_thread(thread);
    }
    const bool all_ended =
        std::all_of(threads_.begin(), threads_.end(), [](const Thread& one) { return one.state == State::kExited; });
    if (all_ended) return;
    if (release_warps() || release_barrier()) continue;
    const auto stuck = std::find_if(threads_.begin(), threads_.end(), [](const Thread& one) {
      return one.state == State::kAtWarp || one.state == State::kAtBarrier;
    });
    stop(*stuck, *stuck->waits_at, "waits for threads that never come: they ended, or wait elsewhere");
  }
}

void Launch::run_thread(Thread& thread) {
  enter(thread);
  std::size_t count = 0;
  while (thread.state == State::kReady) {
    Frame& frame = thread.frames.back();
    const Instruction& instruction = frame.function->code[run_steps(thread, frame, count)];
    if (!step(thread, instruction)) thread.waits_at = &instruction;
  }
}

/// Arithmetic and branches, up to an instruction of another kind, which is next: its index.
std::size_t Launch::run_steps(Thread& thread, Frame& frame, std::size_t& count) const {
  const Step* const steps = frame.function->steps.data();
  std::uint64_t* const words = frame.words.data();
  for (std::size_t at = frame.at;;) {
    const Step& step = steps[at];
    if (++count > kMostSteps)
      stop(thread, frame.function->code[std::min(at, frame.function->code.size() - 1)],
           "comes to no end: its thread waits for another one, or for nothing");
    ++at;
    if (step.guarded && ((words[step.guard] & 1) != 0) == step.guard_negated) continue;
    switch (step.what) {
      case Step::What::kArithmetic: {
        const std::uint64_t in[4] = {words[step.in[0]], words[step.in[1]], words[step.in[2]], words[step.in[3]]};
        words[step.out] = step.compute(in, thread.carry);
        break;
      }
      case Step::What::kBranch:
        at = step.target;
        break;
      case Step::What::kOther:
        frame.at = at;
        return at - 1;
      case Step::What::kEnd:
        misuse("kernel " + kernel_.name + " runs over its end");
    }
  }
}

bool Launch::step(Thread& thread, const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::kPlain: {
      std::uint64_t in[4] = {};
      for (std::size_t i = 0; i < instruction.operation.inputs; ++i) in[i] = value(thread, instruction.in[i]);
      set(thread, instruction.out[0], instruction.operation.compute(in, thread.carry));
      return true;
    }
    case Kind::kPack: {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < instruction.in.size(); ++i) {
        const std::uint64_t part =
            value(thread, instruction.in[i]) & (~std::uint64_t{0} >> (64 - 8 * instruction.bytes));
        word |= part << (8 * instruction.bytes * i);
      }
      set(thread, instruction.out[0], word);
      return true;
    }
    case Kind::kUnpack: {
      const std::uint64_t word = value(thread, instruction.in[0]);
      for (std::size_t i = 0; i < instruction.out.size(); ++i) {
        set(thread, instruction.out[i],
            word >> (8 * instruction.bytes * i) & (~std::uint64_t{0} >> (64 - 8 * instruction.bytes)));
      }
      return true;
    }
    case Kind::kBranch:  // run_thread() did
      return true;
    case Kind::kReturn:
      if (give_back(thread)) return true;
      [[fallthrough]];
    case Kind::kExit:
      expect_no_copies(thread);
      thread.state = State::kExited;
      return false;
    case Kind::kTrap:
      stop(thread, instruction, "was reached");
    case Kind::kCall:
      call(thread, instruction);
      return true;
    case Kind::kLoad:
      load(thread, instruction);
      return true;
    case Kind::kStore:
      store(thread, instruction);
      return true;
    case Kind::kAtomic:
      atomic(thread, instruction);
      return true;
    case Kind::kCopy:
      copy(thread, instruction);
      return true;
    case Kind::kCopyCommit:
      thread.committed.push_back(std::move(thread.copies));
      thread.copies.clear();
      return true;
    case Kind::kCopyWait:
      wait_for_copies(thread, instruction);
      return true;
    case Kind::kFence:
      if (++fences_ > kMostPhases) stop(thread, instruction, "comes more often than the emulation counts");
      enter(thread);
      return true;
    case Kind::kActiveMask:
      set(thread, instruction.out[0], 1U << (thread.index % kWarp));
      return true;
    case Kind::kBarrier:
      thread.state = State::kAtBarrier;
      return false;
    case Kind::kWarpBarrier:
    case Kind::kShuffle:
    case Kind::kVote:
    case Kind::kMatch:
    case Kind::kMatrixLoad:
    case Kind::kMatrixProduct:
      thread.state = State::kAtWarp;
      return false;
  }
  return true;
}

std::uint64_t Launch::special(const Thread& thread, std::uint64_t which) const {
  const std::uint32_t lane = thread.index % kWarp;
  switch (static_cast<Special>(which)) {
    case Special::kTidX:
      return thread.id.x;
    case Special::kTidY:
      return thread.id.y;
    case Special::kTidZ:
      return thread.id.z;
    case Special::kNtidX:
      return config_.block.x;
    case Special::kNtidY:
      return config_.block.y;
    case Special::kNtidZ:
      return config_.block.z;
    case Special::kCtaidX:
      return block_id_.x;
    case Special::kCtaidY:
      return block_id_.y;
    case Special::kCtaidZ:
      return block_id_.z;
    case Special::kNctaidX:
      return config_.grid.x;
    case Special::kNctaidY:
      return config_.grid.y;
    case Special::kNctaidZ:
      return config_.grid.z;
    case Special::kLaneId:
      return lane;
    case Special::kWarpId:
      return thread.index / kWarp;
    case Special::kWarpSize:
      return kWarp;
    case Special::kLanemaskEq:
      return 1U << lane;
    case Special::kLanemaskLt:
      return (1U << lane) - 1;
    case Special::kLanemaskLe:
      return (2U << lane) - 1;
    case Special::kLanemaskGt:
      return static_cast<std::uint32_t>(~((2U << lane) - 1));
    case Special::kLanemaskGe:
      return static_cast<std::uint32_t>(~((1U << lane) - 1));
  }
  return 0;
}

std::uint64_t Launch::named(const Thread& thread, const Operand& operand) const {
  if (operand.kind == Operand::Kind::kImmediate) return operand.value;
  if (operand.kind == Operand::Kind::kSymbol) return variables_[operand.value];
  if (operand.kind == Operand::Kind::kSpecial) return special(thread, operand.value);
  misuse("kernel " + kernel_.name + " uses a name that the PTX reader does not know");
}

void Launch::call(Thread& thread, const Instruction& instruction) {
  const Function& callee = *instruction.callee;
  const Frame& caller = thread.frames.back();
  Frame frame;
  frame.function = &callee;
  frame.params.assign(callee.param_bytes, kPoison);
  frame.local.assign(callee.local_bytes, kPoison);
  for (std::size_t i = 0; i < instruction.arguments.size(); ++i) {
    const Slot& from = caller.function->params.at(instruction.arguments[i]);
    const Slot& to = callee.params.at(callee.parameter_names.at(i));
    std::memcpy(frame.params.data() + to.offset, caller.params.data() + from.offset, to.bytes);
  }
  thread.frames.push_back(std::move(frame));
  fill_words(thread);
}

bool Launch::give_back(Thread& thread) {
  if (thread.frames.size() == 1) return false;
  const Frame callee = std::move(thread.frames.back());
  thread.frames.pop_back();
  Frame& caller = thread.frames.back();
  thread.words = caller.words.data();
  const Instruction& call = caller.function->code[caller.at - 1];
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const Slot& from = callee.function->params.at(callee.function->result_names.at(i));
    const Slot& to = caller.function->params.at(call.results[i]);
    std::memcpy(caller.params.data() + to.offset, callee.params.data() + from.offset, to.bytes);
  }
  return true;
}

}  // namespace tenon::emulated_cuda::ptx
