// Loads, stores and atomics of a launch, with their checks, and asynchronous copies from global to shared memory
// (cp.async), which arrive as late as they may: when their thread waits for them. Until then nobody may use the bytes.
// Declared in launch.h.
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/launch.h"

#include <cstring>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr unsigned char kPoison = 0xA5;

template <class T>
T read(const unsigned char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// Of the sizes that nearly all accesses have, without a call.
std::uint64_t word_at(const unsigned char* data, std::size_t bytes) {
  switch (bytes) {
    case 1:
      return *data;
    case 2:
      return read<std::uint16_t>(data);
    case 4:
      return read<std::uint32_t>(data);
    default:
      return read<std::uint64_t>(data);
  }
}
void put_word(unsigned char* data, std::size_t bytes, std::uint64_t word) {
  switch (bytes) {
    case 1:
      *data = static_cast<unsigned char>(word);
      break;
    case 2:
      std::memcpy(data, &word, 2);
      break;
    case 4:
      std::memcpy(data, &word, 4);
      break;
    default:
      std::memcpy(data, &word, 8);
  }
}
bool all_written(const unsigned char* written, std::size_t bytes) {
  constexpr std::uint64_t kAll = 0x0101010101010101U * kWritten;
  if (bytes == 4) return read<std::uint32_t>(written) == static_cast<std::uint32_t>(kAll);
  if (bytes == 2) return read<std::uint16_t>(written) == static_cast<std::uint16_t>(kAll);
  if (bytes == 1) return *written == kWritten;
  for (std::size_t i = 0; i < bytes; i += 8) {
    if (read<std::uint64_t>(written + i) != kAll) return false;
  }
  return true;
}

std::string count_of(std::size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

}  // namespace

void Launch::check_race(AccessLog& log, const Thread& thread, const Instruction& instruction, std::uint64_t address,
                        std::size_t bytes, Access access, const char* memory) {
  const Where* before = log.conflict(address, bytes, access, now_);
  if (before == nullptr) return;
  stop(thread, instruction,
       std::string("races in ") + memory + " memory at " + hexadecimal(address) + " with " +
           (before->block() == now_.block() ? "" : "block " + std::to_string(before->block()) + ", ") + "thread " +
           std::to_string(before->thread()) + (before->block() == now_.block() ? " of its block" : ""));
}

unsigned char* Launch::global_bytes(const Thread& thread, const Instruction& instruction, Address address,
                                    std::size_t bytes) {
  const Extent* extent = last_extent_;
  if (extent == nullptr || address < extent->address || address - extent->address >= extent->bytes)
    extent = machine_.space.holding(address);
  if (extent == nullptr && machine_.is_pinned(reinterpret_cast<void*>(address), bytes))
    return reinterpret_cast<unsigned char*>(address);  // the device finds it at the host's address
  if (extent == nullptr) {
    stop(thread, instruction,
         "uses " + count_of(bytes) + " at " + hexadecimal(address) +
             (machine_.space.is_device(reinterpret_cast<void*>(address)) ? ", where nothing is"
                                                                         : ", which is not device memory"));
  }
  const std::size_t offset = address - extent->address;
  if (bytes > extent->bytes - offset) {
    stop(thread, instruction,
         "uses " + count_of(bytes) + " at " + hexadecimal(address) + ", beyond the end of its memory of " +
             count_of(extent->bytes));
  }
  if (extent == last_extent_) return extent->backing->data() + offset;
  if (!extent->is_reached_by(context_.device, [&](int owner) { return context_.peers.contains(owner); })) {
    stop(thread, instruction, "uses memory of device " + std::to_string(extent->owner) + " without access to it");
  }
  if (!extent->is_there) stop(thread, instruction, "uses memory before a stream has got to its allocation");
  last_extent_ = extent;
  return extent->backing->data() + offset;
}

unsigned char* Launch::bytes_at(Thread& thread, const Instruction& instruction, std::size_t bytes, Access access) {
  Frame& frame = thread.frames.back();
  if (instruction.space == Space::kParam && instruction.in[0].kind == Operand::Kind::kRegister) {
    const std::uint64_t at = value(thread, instruction.in[0]) + static_cast<std::uint64_t>(instruction.in[0].offset);
    if (at > frame.params.size() || bytes > frame.params.size() - at)
      stop(thread, instruction, "is beyond the end of the parameters");
    if (at % bytes != 0)
      stop(thread, instruction, "uses a parameter at " + std::to_string(at) + ", which is not aligned to that");
    return frame.params.data() + at;
  }
  if (instruction.space == Space::kParam) {
    const Slot& slot = instruction.slot;
    const std::size_t offset = static_cast<std::size_t>(instruction.in[0].offset);
    if (offset + bytes > slot.bytes) stop(thread, instruction, "is beyond the end of parameter " + instruction.name);
    return frame.params.data() + slot.offset + offset;
  }
  std::uint64_t address = value(thread, instruction.in[0]) + static_cast<std::uint64_t>(instruction.in[0].offset);
  Space space = instruction.space;
  if (space == Space::kGeneric) {
    space = address >= kLocalWindow ? Space::kLocal : address >= kSharedWindow ? Space::kShared : Space::kGlobal;
    address -= space == Space::kLocal ? kLocalWindow : space == Space::kShared ? kSharedWindow : 0;
  }
  if ((address & (bytes - 1)) != 0)  // a power of two
    stop(thread, instruction,
         "uses " + count_of(bytes) + " at " + hexadecimal(address) + ", which is not aligned to that");
  if (space == Space::kGlobal) {
    unsigned char* data = global_bytes(thread, instruction, address, bytes);
    check_race(global_log_, thread, instruction, address, bytes, access, "global");
    return data;
  }
  address &= 0xffffffffU;
  if (space == Space::kShared) return shared_bytes(thread, instruction, address, bytes, access);
  if (address > frame.local.size() || bytes > frame.local.size() - address) {
    stop(thread, instruction,
         "uses " + count_of(bytes) + " at " + std::to_string(address) + " of " + count_of(frame.local.size()) +
             " of local memory");
  }
  return frame.local.data() + address;
}

unsigned char* Launch::shared_bytes(Thread& thread, const Instruction& instruction, std::uint64_t address,
                                    std::size_t bytes, Access access) {
  if (address > shared_.size() || bytes > shared_.size() - address) {
    stop(thread, instruction,
         "uses " + count_of(bytes) + " at " + std::to_string(address) + " of " + count_of(shared_.size()) +
             " of shared memory");
  }
  unsigned char* const written = shared_written_.data() + address;
  if (!all_written(written, bytes)) {
    if (std::memchr(written, kOnItsWay, bytes) != nullptr)
      stop(thread, instruction,
           "uses shared memory at " + std::to_string(address) + ", to which an asynchronous copy is on its way");
    const bool writes = access == Access::kWrite || access == Access::kAtomic;
    const bool reads = access != Access::kWrite && instruction.kind != Kind::kStore;
    if (reads && std::memchr(written, kUnwritten, bytes) != nullptr)
      stop(thread, instruction, "reads shared memory at " + std::to_string(address) + " that was never written");
    if (writes) std::memset(written, kWritten, bytes);
  }
  check_race(shared_log_, thread, instruction, address, bytes, access, "shared");
  return shared_.data() + address;
}

void Launch::load(Thread& thread, const Instruction& instruction) {
  const std::size_t bytes = instruction.bytes;
  const unsigned char* data = bytes_at(thread, instruction, bytes * instruction.out.size(),
                                       instruction.strong     ? Access::kStrongRead
                                       : instruction.constant ? Access::kConstantRead
                                                              : Access::kRead);
  for (std::size_t i = 0; i < instruction.out.size(); ++i) {
    std::uint64_t word = word_at(data + i * bytes, bytes);
    if (instruction.is_signed && bytes < 8 && (word >> (8 * bytes - 1) & 1) != 0)
      word |= ~std::uint64_t{0} << (8 * bytes);
    set(thread, instruction.out[i], word);
  }
}

void Launch::store(Thread& thread, const Instruction& instruction) {
  const std::size_t bytes = instruction.bytes;
  unsigned char* data = bytes_at(thread, instruction, bytes * (instruction.in.size() - 1),
                                 instruction.strong ? Access::kAtomic : Access::kWrite);
  for (std::size_t i = 1; i < instruction.in.size(); ++i) {
    put_word(data + (i - 1) * bytes, bytes, value(thread, instruction.in[i]));
  }
}

void Launch::atomic(Thread& thread, const Instruction& instruction) {
  unsigned char* data = bytes_at(thread, instruction, instruction.bytes, Access::kAtomic);
  global_log_.synchronize(reinterpret_cast<std::uint64_t>(data), now_);
  std::uint64_t before = 0;
  std::memcpy(&before, data, instruction.bytes);
  const std::uint64_t operand = value(thread, instruction.in[1]);
  std::uint64_t after = operand;
  if (instruction.mode == "cas") {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * instruction.bytes);
    after = (before & mask) == (operand & mask) ? value(thread, instruction.in[2]) : before;
  } else if (instruction.mode != "exch") {
    const std::uint64_t in[2] = {before, operand};
    after = instruction.operation.compute(in, thread.carry);
  }
  std::memcpy(data, &after, instruction.bytes);
  if (!instruction.out.empty()) set(thread, instruction.out[0], before);
}

/// What the thread asks for is a write, and so is what arrives: both are ordered with the accesses of other threads.
void Launch::copy(Thread& thread, const Instruction& instruction) {
  const std::size_t bytes = instruction.bytes;
  const std::uint64_t there = instruction.in.size() > 3 ? value(thread, instruction.in[3]) & 0xffffffffU : bytes;
  if (there > bytes)
    stop(thread, instruction, "reads " + std::to_string(there) + " bytes and writes " + std::to_string(bytes));
  const auto address_in = [&](std::size_t i) {
    const std::uint64_t address =
        value(thread, instruction.in[i]) + static_cast<std::uint64_t>(instruction.in[i].offset);
    if (address % bytes != 0) {
      stop(thread, instruction,
           "uses " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ", which is not aligned to that");
    }
    return address;
  };
  Copy copy{.address = address_in(0) & 0xffffffffU, .bytes = bytes, .instruction = &instruction};
  const std::uint64_t from = address_in(1);
  if (there > 0) {
    const unsigned char* data = global_bytes(thread, instruction, from, there);
    check_race(global_log_, thread, instruction, from, there, Access::kRead, "global");
    std::memcpy(copy.data.data(), data, there);
  }
  std::memset(shared_bytes(thread, instruction, copy.address, bytes, Access::kWrite), kPoison, bytes);
  std::memset(shared_written_.data() + copy.address, kOnItsWay, bytes);
  thread.copies.push_back(copy);
}

void Launch::finish_copies(Thread& thread, const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    std::memset(shared_written_.data() + copy.address, kWritten, copy.bytes);
    std::memcpy(shared_bytes(thread, *copy.instruction, copy.address, copy.bytes, Access::kWrite), copy.data.data(),
                copy.bytes);
  }
}

/// For all but the newest groups of that number; without a number for all copies, committed or not.
void Launch::wait_for_copies(Thread& thread, const Instruction& instruction) {
  const std::uint64_t newest = instruction.in.empty() ? 0 : value(thread, instruction.in[0]);
  while (thread.committed.size() > newest) {
    finish_copies(thread, thread.committed.front());
    thread.committed.erase(thread.committed.begin());
  }
  if (!instruction.in.empty()) return;
  finish_copies(thread, thread.copies);
  thread.copies.clear();
}

void Launch::expect_no_copies(const Thread& thread) const {
  const std::vector<Copy>* left = &thread.copies;
  for (const std::vector<Copy>& group : thread.committed) {
    if (!group.empty()) left = &group;
  }
  if (!left->empty()) stop(thread, *left->front().instruction, "is on its way when its thread ends");
}

}  // namespace tenon::emulated_cuda::ptx
