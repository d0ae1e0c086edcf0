// Asynchronous copies from global to shared memory (cp.async), which arrive as late as they may: when their thread
// waits for them. Until then nobody may use the bytes. Declared in launch.h.
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/launch.h"

#include <cstring>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr unsigned char kPoison = 0xA5;

}  // namespace

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
    thread.committed.pop_front();
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
