// A PTX module as it is run: functions with their instructions, and what lies in memory.
#pragma once

#include "support/emulated_cuda/ptx/operations.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::emulated_cuda::ptx {

/// Spaces of memory. Addresses of shared and local memory are offsets; as generic addresses they are above these
/// windows.
enum class Space { kGeneric, kGlobal, kShared, kLocal, kParam };
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{1} << 61;

struct Operand {
  enum class Kind { kNone, kRegister, kImmediate, kSymbol, kSpecial };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;  ///< register, immediate, index of a variable of the module, or a special register
  std::int64_t offset = 0;  ///< of an address
};

/// %tid.x and the like, in this order.
enum class Special : std::uint64_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kWarpSize,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe
};

enum class Kind {
  kPlain,
  kPack,
  kUnpack,
  kBranch,
  kReturn,
  kExit,
  kTrap,
  kCall,
  kLoad,
  kStore,
  kAtomic,
  // a thread stops at these until others have come
  kBarrier,
  kWarpBarrier,
  kShuffle,
  kVote,
  kMatch,
  kMatrixLoad,
  kMatrixProduct,
  // asynchronous copies to shared memory
  kCopy,
  kCopyCommit,
  kCopyWait,
  kActiveMask,
  kFence
};

struct Function;

struct Slot {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Instruction {
  Kind kind = Kind::kPlain;
  std::string opcode;
  Operation operation;       ///< of kPlain, and of the arithmetic of kAtomic
  std::vector<Operand> out;  ///< destinations; of a store, none
  std::vector<Operand> in;   ///< sources; of a load or store, the address first
  Operand guard;             ///< a predicate, or none
  bool guard_negated = false;
  std::size_t target = 0;                       ///< of a branch
  std::string name;                             ///< label, called function or parameter
  Slot slot;                                    ///< of the parameter that is loaded or stored
  std::vector<std::string> arguments, results;  ///< parameters of a call
  const Function* callee = nullptr;
  Space space = Space::kGeneric;
  std::size_t bytes = 4;  ///< of each element that is loaded or stored
  bool is_signed = false;
  bool strong = false;    ///< volatile, relaxed, acquire, release: no data race with its like
  bool constant = false;  ///< read through the cache of constants: the launch must not write there
  std::string mode;       ///< of a shuffle or vote; "trans" of a matrix, "f16" or "bf16" of a product
  int line = 0;           ///< in the source, by .loc
  int file = 0;
};

/// What runs of an instruction, beside each other: arithmetic and branches are nearly all that a thread does.
struct Step {
  enum class What : unsigned char { kArithmetic, kBranch, kOther, kEnd };
  Compute compute = nullptr;
  std::array<std::uint32_t, 4> in{};  ///< words of the frame
  std::uint32_t out = 0;
  std::uint32_t guard = 0;
  std::uint32_t target = 0;
  What what = What::kOther;
  bool guarded = false;
  bool guard_negated = false;
};

struct Module;

struct Function {
  std::string name;
  bool entry = false;
  std::vector<Instruction> code;
  std::vector<Step> steps;  ///< one for each instruction, and one for the end
  std::size_t registers = 0;
  std::vector<std::uint32_t> poisoned;  ///< words that may be read before they are written
  std::vector<Operand> constants;       ///< the words of a frame after its registers: operands that keep their value
  std::map<std::string, Slot> params;   ///< its own and those of its calls, in one frame
  std::vector<std::string> parameter_names;
  std::vector<std::string> result_names;
  std::size_t param_bytes = 0;
  std::size_t local_bytes = 0;
  std::size_t shared_bytes = 0;  ///< static
  std::size_t max_threads = 1024;
  std::function<void(const Module& module, Function& it)> read;  ///< until its instructions were asked for
};

/// A variable of the module in global or constant memory.
struct Variable {
  std::string name;
  std::size_t alignment = 1;
  std::vector<unsigned char> bytes;
};

struct Module {
  int target = 0;                                                           ///< 75 for sm_75
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;  ///< see function()
  std::vector<Variable> variables;
  std::map<int, std::string> files;

  /// With its instructions, which are read when they are first asked for: a program runs few functions of many. The
  /// machine's lock guards it.
  const Function& function(std::string_view name) const;
};

/// Gives registers and constants their words of a frame, and fills in the steps: a function's code has been read.
void lay_out(Function& function);

/// Reads PTX text; misuse() names what it does not know, in an instruction when its function is asked for.
Module read_module(std::string_view text);

}  // namespace tenon::emulated_cuda::ptx
