// The lists of free objects of a thread, one for each size in steps of 32 bytes.
#include <tenon/core/export.h>
#include <tenon/core/recycled.h>

#include <cstdint>
#include <new>

namespace tenon {
namespace {

constexpr std::size_t kStep = 32;
constexpr std::size_t kLargest = 1024;                      // larger ones are rare
constexpr std::size_t kKeptBytes = std::size_t{256} << 10;  // of a thread, in all sizes

struct FreeObject {
  FreeObject* next;
};

enum class State : std::uint8_t { kUnused, kInUse, kThreadEnds };

/// Without a destructor, so that it is reached without a check, and still there while a thread's other variables end.
struct FreeLists {
  FreeObject* first[kLargest / kStep + 1];
  std::size_t kept;
  State state;
};
constinit thread_local FreeLists lists{};

/// Empties the lists when the thread ends.
struct AtThreadEnd {
  AtThreadEnd() { lists.state = State::kInUse; }
  AtThreadEnd(const AtThreadEnd&) = delete;
  AtThreadEnd& operator=(const AtThreadEnd&) = delete;
  ~AtThreadEnd() {
    lists.state = State::kThreadEnds;
    for (FreeObject*& first : lists.first) {
      while (FreeObject* object = first) {
        first = object->next;
        ::operator delete(object);
      }
    }
    lists.kept = 0;
  }
};

std::size_t rounded(std::size_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

/// Whether this thread may keep objects; its first one sees to it that they go when it ends.
bool keeps() {
  if (lists.state == State::kUnused) [[unlikely]] {
    thread_local AtThreadEnd at_end;
    static_cast<void>(at_end);
  }
  return lists.state == State::kInUse;
}

}  // namespace

void* take_recycled(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  if (!kIsSanitized && size <= kLargest) {
    FreeObject*& first = lists.first[size / kStep];
    if (FreeObject* object = first) [[likely]] {
      first = object->next;
      lists.kept -= size;
      return object;
    }
  }
  return ::operator new(size);
}

void give_recycled(void* object, std::size_t bytes) noexcept {
  const std::size_t size = rounded(bytes);
  if (!kIsSanitized && object != nullptr && size <= kLargest && lists.kept + size <= kKeptBytes && keeps()) [[likely]] {
    FreeObject*& first = lists.first[size / kStep];
    first = new (object) FreeObject{first};
    lists.kept += size;
    return;
  }
  ::operator delete(object);
}

}  // namespace tenon
