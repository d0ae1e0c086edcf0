// Operands of the libraries' stand-ins in device memory.
#include "support/emulated_cuda/libraries/operands.h"

#include <cstring>
#include <functional>

namespace tenon::emulated_cuda {

namespace {

std::function<bool(int)> peers_of(const Context& context) {
  return [&context](int owner) { return context.peers.contains(owner); };
}

template <class T>
T read(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

std::size_t size_of(Element element) { return element == Element::kF64 ? 8 : element == Element::kF32 ? 4 : 2; }

double load(Element element, const unsigned char* bytes) {
  switch (element) {
    case Element::kF16:
      return static_cast<double>(read<_Float16>(bytes));
    case Element::kBF16: {
      const std::uint32_t bits = std::uint32_t{read<std::uint16_t>(bytes)} << 16;
      return read<float>(reinterpret_cast<const unsigned char*>(&bits));
    }
    case Element::kF32:
      return read<float>(bytes);
    default:
      return read<double>(bytes);
  }
}

void store(Element element, unsigned char* bytes, double value) {
  const auto put = [&](auto typed) { std::memcpy(bytes, &typed, sizeof typed); };
  switch (element) {
    case Element::kF16:
      return put(static_cast<_Float16>(static_cast<float>(value)));
    case Element::kBF16: {
      const auto single = static_cast<float>(value);
      const auto bits = read<std::uint32_t>(reinterpret_cast<const unsigned char*>(&single));
      return put(static_cast<std::uint16_t>(single != single ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
    case Element::kF32:
      return put(static_cast<float>(value));
    default:
      return put(value);
  }
}

Elements::Elements(Machine& machine, const Context& context, const Region& region, const std::string& what)
    : element_(region.element),
      segments_(machine.space.segments(region.address, region.bytes(), context.device, what, peers_of(context))) {
  for (const Segment& segment : segments_) bytes_.insert(bytes_.end(), segment.data, segment.data + segment.bytes);
}

void Elements::write_back() {
  std::size_t done = 0;
  for (const Segment& segment : segments_) {
    std::memcpy(segment.data, bytes_.data() + done, segment.bytes);
    done += segment.bytes;
  }
}

void expect(const Call& call, bool holds, const std::string& sentence) {
  if (!holds) misuse(std::string(call.name()) + ": " + sentence);
}

void expect_device(const Call& call, Machine& machine, const void* pointer, std::size_t alignment, const char* name) {
  const std::string what = std::string(call.name()) + ": " + name;
  if (!machine.space.is_device(pointer))
    misuse(what + " at " + hexadecimal(reinterpret_cast<Address>(pointer)) + " is not device memory");
  if (reinterpret_cast<Address>(pointer) % alignment != 0)
    misuse(what + " at " + hexadecimal(reinterpret_cast<Address>(pointer)) + " is not aligned to " +
           std::to_string(alignment) + " bytes");
}

void expect_host(const Call& call, Machine& machine, const void* pointer, const char* name) {
  if (pointer == nullptr || machine.space.is_device(pointer))
    misuse(std::string(call.name()) + ": " + name + " is not a number in host memory");
}

void expect_workspace(const Call& call, Machine& machine, const void* pointer, std::size_t bytes, std::size_t needed) {
  if (bytes < needed)
    misuse(std::string(call.name()) + ": the workspace has " + std::to_string(bytes) +
           " bytes, and the algorithm wants " + std::to_string(needed));
  if (bytes > 0) expect_device(call, machine, pointer, 256, "the workspace");
}

void use_workspace(Machine& machine, const Context& context, const void* pointer, std::size_t bytes,
                   const std::string& what) {
  const auto address = reinterpret_cast<Address>(pointer);
  for (const Segment& segment :
       machine.space.segments(address, bytes, context.device, what + " (workspace)", peers_of(context)))
    std::memset(segment.data, 0x5A, segment.bytes);
}

}  // namespace tenon::emulated_cuda
