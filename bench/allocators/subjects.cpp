// The null allocator hands out a rising address: what is left is the cost of the stack and its statistics.
#include "subjects.h"

#include <caching/caching_allocator.h>

#include <atomic>

namespace tenon::bench {

namespace {

class Null final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    next_ += 512;
    return {.data = reinterpret_cast<void*>(next_), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  bool is_thread_safe() const override { return true; }

 private:
  std::uintptr_t next_ = 1 << 20;
};

Subject caching_subject(const std::string& name, bool expandable) {
  return {.name = name,
          .info = {.name = name,
                   .options = caching::option_schema(expandable),
                   .create = [expandable](const AllocatorContext& context) {
                     return caching::make_allocator(context, expandable);
                   }}};
}

}  // namespace

std::vector<Subject> subjects() {
  return {{.name = "null",
           .info = {.name = "null", .create = [](const AllocatorContext&) { return std::make_unique<Null>(); }},
           .caches = false},
          caching_subject("caching", false),
          caching_subject("expandable", true)};
}

}  // namespace tenon::bench
