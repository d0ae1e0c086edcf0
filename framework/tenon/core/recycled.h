// Recycled: a base for the small objects that every operator makes and drops (tensors, storages, nodes). Each thread
// keeps what it gave back, up to a bound, so that a step which has run before takes nothing from the system's heap.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>

namespace tenon {

/// Memory for an object of that many bytes, aligned for any fundamental type. Throws std::bad_alloc.
TENON_API void* take_recycled(std::size_t bytes);
/// Gives it back, in any thread; `bytes` as it was taken with.
TENON_API void give_recycled(void* object, std::size_t bytes) noexcept;

/// Where a class and those derived from it come from. A class that is deleted through its base has a virtual
/// destructor, which says the size.
class Recycled {
 public:
  static void* operator new(std::size_t bytes) { return take_recycled(bytes); }
  static void operator delete(void* object, std::size_t bytes) noexcept { give_recycled(object, bytes); }

 protected:
  Recycled() = default;
  ~Recycled() = default;
};

/// The same for the elements of a container: std::vector<T, RecycledAllocator<T>>.
template <class T>
struct RecycledAllocator {
  using value_type = T;
  RecycledAllocator() = default;
  template <class U>
  RecycledAllocator(const RecycledAllocator<U>& /*other*/) {}  // NOLINT: containers convert
  T* allocate(std::size_t count) { return static_cast<T*>(take_recycled(count * sizeof(T))); }
  void deallocate(T* elements, std::size_t count) noexcept { give_recycled(elements, count * sizeof(T)); }
  bool operator==(const RecycledAllocator& /*other*/) const { return true; }
};

}  // namespace tenon
