// What the stand-ins of NVIDIA's libraries share: objects that they hand out, and operands in device memory.
#pragma once

#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::emulated_cuda {

/// Handles and descriptors of one kind; the caller holds the machine's lock.
template <class Handle, class Object>
class Objects {
 public:
  Handle make(Object object) {
    auto owned = std::make_unique<Object>(std::move(object));
    auto* const handle = reinterpret_cast<Handle>(owned.get());
    alive_[owned.get()] = std::move(owned);
    return handle;
  }
  Object& get(const Call& call, Handle handle) {
    const auto found = alive_.find(handle);
    if (found == alive_.end())
      misuse(std::string(call.name()) + " was given a handle or descriptor that was destroyed or never made");
    return *found->second;
  }
  void destroy(const Call& call, Handle handle) {
    get(call, handle);
    alive_.erase(handle);
  }

 private:
  std::unordered_map<const void*, std::unique_ptr<Object>> alive_;
};

/// misuse() with the call's name and that sentence, unless it holds.
void expect(const Call& call, bool holds, const std::string& sentence);

/// What is behind the handle of a library: it is of one context.
struct LibraryHandle {
  const Context* context;
  cudaStream_t stream = nullptr;
};

/// Handles of one library, which are used and destroyed in the context that they were made in.
template <class Handle>
class LibraryHandles : public Objects<Handle, LibraryHandle> {
 public:
  /// False where a failure was injected.
  bool make_in_context(Call& call, Handle* handle) {
    if (call.refused()) return false;
    *handle = this->make({&call.context()});
    return true;
  }
  void destroy_in_context(Call& call, Handle handle) {
    if (this->get(call, handle).context != &call.context())
      misuse(std::string(call.name()) + " was called while the context of another device was current");
    this->destroy(call, handle);
  }
  void expect_in_context(Call& call, Handle handle, const Stream& stream) {
    if (this->get(call, handle).context != &call.context() || stream.context != &call.context())
      misuse(std::string(call.name()) + " was given a handle or a stream of another device");
  }
};

enum class Element { kF16, kBF16, kF32, kF64 };
std::size_t size_of(Element element);
double load(Element element, const unsigned char* bytes);
void store(Element element, unsigned char* bytes, double value);

/// An operand of queued work: `count` elements from an address on, which lie apart as the work sees fit.
struct Region {
  Address address = 0;
  Element element = Element::kF32;
  std::size_t count = 0;
  std::size_t bytes() const { return count * size_of(element); }
};

/// A region's elements while the work runs.
class Elements {
 public:
  /// misuse() where some of it is not there or not this device's.
  Elements(Machine& machine, const Context& context, const Region& region, const std::string& what);
  double operator[](std::size_t i) const { return load(element_, bytes_.data() + i * size_of(element_)); }
  void set(std::size_t i, double value) { store(element_, bytes_.data() + i * size_of(element_), value); }
  void write_back();

 private:
  Element element_;
  std::vector<Segment> segments_;
  std::vector<unsigned char> bytes_;
};

/// What a call of a library promises about its operands: misuse() says which one breaks it.
void expect_device(const Call& call, Machine& machine, const void* pointer, std::size_t alignment, const char* name);
void expect_host(const Call& call, Machine& machine, const void* pointer, const char* name);
/// A workspace that is there, large enough, and aligned to 256 bytes.
void expect_workspace(const Call& call, Machine& machine, const void* pointer, std::size_t bytes, std::size_t needed);
/// Fills it, as a library would.
void use_workspace(Machine& machine, const Context& context, const void* pointer, std::size_t bytes,
                   const std::string& what);

}  // namespace tenon::emulated_cuda
