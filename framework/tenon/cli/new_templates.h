// The files of a new allocator project. @NAME@ is the allocator's name, @CLASS@ its class, which ends in a word that no
// name in reach has: an allocator may be called `request`.
#pragma once

#include <string_view>

namespace tenon::cli {

struct Template {
  std::string_view path;
  std::string_view text;
};

inline constexpr std::string_view kAllocatorSource =
    R"source(// @NAME@: freed blocks wait in a list for each size and stream, and are handed out again.
#include <tenon/plugin/plugin.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace {
using namespace tenon;

class @CLASS@ final : public Allocator {
 public:
  static OptionSchema options() {
    return {OptionSpec::size("granularity", 512, "sizes are rounded up to a multiple of this").range(std::size_t{512}, 64 * MiB)};
  }

  explicit @CLASS@(const AllocatorContext& context)
      : source_(context.source), granularity_(context.options.size("granularity")) {}
  ~@CLASS@() override {
    try { source_.synchronize(); } catch (const Error&) {}  // work may still run, unless the device is lost
    for (const auto& [address, entry] : entries_) source_.release(address, entry.bytes);
  }

  Block allocate(const Request& request) override {
    if (request.bytes > PTRDIFF_MAX) throw OutOfMemory({.requested_bytes = request.bytes});  // rounding would wrap
    const std::size_t bytes = align_up(request.bytes, granularity_);
    std::vector<void*>& waiting = free_[{bytes, request.stream}];
    void* address = nullptr;
    if (!waiting.empty()) {
      address = waiting.back();
      waiting.pop_back();
    } else {
      address = source_.acquire(bytes);
      if (address == nullptr && trim(0) != 0) address = source_.acquire(bytes);  // the device is full of what we keep
      if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
      entries_[address] = {.bytes = bytes, .stream = request.stream};
    }
    return {.data = address, .bytes = bytes, .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    Entry& entry = entries_[block.data];
    if (last_use != entry.stream) entry.others.insert(last_use);
    for (const StreamRef other : entry.others) source_.wait(source_.mark(other));  // the next user is on entry.stream
    entry.others.clear();
    free_[{entry.bytes, entry.stream}].push_back(block.data);
  }

  void record_use(const Block& block, StreamRef stream) override { entries_[block.data].others.insert(stream); }

  std::size_t trim(std::size_t keep_bytes) override {
    std::size_t cached = 0, given_back = 0;
    for (const auto& [key, list] : free_) cached += key.first * list.size();
    if (cached > keep_bytes) source_.synchronize();  // work that used them may still run
    for (auto& [key, list] : free_) {
      for (; !list.empty() && cached - given_back > keep_bytes; list.pop_back(), given_back += key.first) {
        source_.release(list.back(), key.first);
        entries_.erase(list.back());
      }
    }
    return given_back;
  }

 private:
  struct Entry {
    std::size_t bytes = 0;
    StreamRef stream;              // on which it was handed out first, and always will be
    std::set<StreamRef> others{};  // that used it since
  };
  MemorySource& source_;
  std::size_t granularity_;
  std::map<void*, Entry> entries_;
  std::map<std::pair<std::size_t, StreamRef>, std::vector<void*>> free_;
};

}  // namespace

TENON_ALLOCATOR(@NAME@, "0.1", @CLASS@, "freed blocks serve requests of their size on their stream")
)source";

inline constexpr std::string_view kAllocatorCMake = R"cmake(# An allocator for Tenon, outside its tree.
cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Tenon CONFIG REQUIRED)
tenon_add_allocator(@NAME@ @NAME@.cpp)

# -DASAN=ON: this plugin under AddressSanitizer, with the Tenon that is installed. The sanitizer is loaded before the program.
option(ASAN "AddressSanitizer in this plugin" OFF)
if(ASAN)
  target_compile_options(tenon_plugin_@NAME@ PRIVATE -fsanitize=address -fno-omit-frame-pointer -g)
  target_link_options(tenon_plugin_@NAME@ PRIVATE -fsanitize=address)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
    OUTPUT_VARIABLE asan_library OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(asan_environment LD_PRELOAD=${asan_library} ASAN_OPTIONS=detect_leaks=0)
endif()

# The program belongs to the package that was found: PREFIX/lib…/cmake/Tenon -> PREFIX/bin.
find_program(TENON_PROGRAM tenon REQUIRED
  HINTS ${Tenon_DIR}/bin ${Tenon_DIR}/../../../bin ${Tenon_DIR}/../../../../bin)
enable_testing()
add_test(NAME @NAME@_keeps_the_contract COMMAND ${TENON_PROGRAM} plugins test $<TARGET_FILE:tenon_plugin_@NAME@> --edges)
add_test(NAME @NAME@_is_chosen_by_path
  COMMAND ${TENON_PROGRAM} config check ${CMAKE_CURRENT_SOURCE_DIR}/experiment.toml
          allocator.name=$<TARGET_FILE:tenon_plugin_@NAME@>)
set_tests_properties(@NAME@_keeps_the_contract @NAME@_is_chosen_by_path PROPERTIES ENVIRONMENT "${asan_environment}")
)cmake";

inline constexpr std::string_view kAllocatorToml =
    R"toml(# tenon run experiment.toml: trains under the allocator of this project, and under one that is shipped.
name = "@NAME@"

[device]
name = "cpu"

[allocator]
name = "build/@NAME@.so"   # a path, relative to this file

[allocator.@NAME@]         # the options that @NAME@.cpp declares: one that is renamed there is renamed here
granularity = "4KiB"

[model]
name = "mlp"

[data]
name = "fashion-mnist"

[train]
epochs = 1
batch_size = 128

[sweep]
"allocator.name" = ["build/@NAME@.so", "caching"]
)toml";

inline constexpr std::string_view kAllocatorReadme = R"md(# @NAME@: an allocator for Tenon

    cmake -S . -B build @PACKAGE@ && cmake --build build
    ctest --test-dir build --output-on-failure       # the conformance kit, and this folder's TOML
    tenon plugins info build/@NAME@.so                # its options
    tenon replay TRACE.gz --allocator build/@NAME@.so # on a recorded memory history
    tenon run experiment.toml                         # in a training run, beside a shipped allocator

The first line names the Tenon that wrote this project; one that is installed in a usual place needs no `-D…`.

A crash or a hang in the kit is told with the call, the stack and the shortest history that leads there. For what writes where
it should not, build this plugin alone under AddressSanitizer (the Tenon that is installed stays as it is):

    cmake -S . -B build-asan @PACKAGE@ -DASAN=ON && cmake --build build-asan
    ctest --test-dir build-asan --output-on-failure
    LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 tenon plugins test build-asan/@NAME@.so

The policy is `@NAME@.cpp`. Statistics, limits, traces, leak tracking and the out-of-memory report are the host's: they work
around this class as they do around any other. The contract of each function is in `tenon/memory/allocator.h`, that of the device's
memory in `tenon/memory/memory_source.h`: `source.mark(stream)` gives a ticket for what was queued there until now,
`source.reached(ticket)` asks whether that is done, `source.wait(ticket)` waits until it is. A policy that needs a record of a block
puts a pointer to it into `Block::cookie`, and gets it back with the block in `deallocate`.
)md";

inline constexpr Template kAllocatorTemplates[] = {{"@NAME@.cpp", kAllocatorSource},
                                                   {"CMakeLists.txt", kAllocatorCMake},
                                                   {"experiment.toml", kAllocatorToml},
                                                   {"README.md", kAllocatorReadme},
                                                   {".gitignore", "build/\ntenon-out/\n"}};

}  // namespace tenon::cli
