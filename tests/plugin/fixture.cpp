// A plugin with one thing wrong, which the compile definitions choose. Loading it leaves a mark in the environment, so
// that a test can tell whether any of its code ran.
#include <tenon/plugin/plugin.h>

#include <cstdlib>

#ifndef FIXTURE_ALLOCATOR
#define FIXTURE_ALLOCATOR FIXTURE_NAME
#endif
#ifndef FIXTURE_MAJOR
#define FIXTURE_MAJOR 0
#endif
#ifndef FIXTURE_MINOR
#define FIXTURE_MINOR 0
#endif

#ifdef FIXTURE_UNDEFINED
void function_that_nobody_defines();
#endif

namespace {

class Plain final : public tenon::Allocator {
 public:
  explicit Plain(tenon::MemorySource& source) : source_(source) {}

  tenon::Block allocate(const tenon::Request& request) override {
    void* data = source_.acquire(request.bytes);
    if (data == nullptr) throw tenon::OutOfMemory({.requested_bytes = request.bytes});
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const tenon::Block& block, tenon::StreamRef) noexcept override {
    source_.synchronize();
    source_.release(block.data, block.bytes);
  }

 private:
  tenon::MemorySource& source_;
};

const int kMark = ::setenv("TENON_FIXTURE_RAN_" FIXTURE_NAME, "1", 1);

[[maybe_unused]] void register_fixture(tenon::plugin::Host& host) {
  if (kMark != 0) return;
#ifdef FIXTURE_UNDEFINED
  function_that_nobody_defines();
#endif
  host.add_allocator(tenon::plugin::detail::allocator_info<Plain>(FIXTURE_ALLOCATOR, "a fixture of the tests"));
#ifdef FIXTURE_THROWS
  throw std::runtime_error("this fixture never works");
#endif
}

[[maybe_unused]] consteval tenon::plugin::Descriptor descriptor() {
#ifdef FIXTURE_NO_REGISTER
  auto made = tenon::plugin::detail::describe(FIXTURE_NAME, "1.0", nullptr);
#else
  auto made = tenon::plugin::detail::describe(FIXTURE_NAME, "1.0", &register_fixture);
#endif
  made.abi_major += FIXTURE_MAJOR;
  made.abi_minor += FIXTURE_MINOR;
#ifdef FIXTURE_TAG
  tenon::plugin::detail::put(made.build_tag, FIXTURE_TAG);
#endif
#ifdef FIXTURE_MAGIC
  made.magic[0] = FIXTURE_MAGIC;
#endif
  return made;
}

}  // namespace

#ifndef FIXTURE_NO_DESCRIPTOR
extern "C"
    __attribute__((visibility("default"), used)) constinit const tenon::plugin::Descriptor tenon_plugin_descriptor =
        descriptor();
#endif
