// The flaws of the buddy allocator's mutants, by the names that its option `flaw` takes.
#pragma once

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

struct Flaw {
  std::string_view name, what;
};
inline void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.name; }

inline constexpr std::array<Flaw, 44> kFlaws = {
    Flaw{"none", "nothing: it keeps the contract"},
    Flaw{"shifted_overlap", "now and then a block begins 512 bytes before its place"},
    Flaw{"rare_double", "every 40th block stays in the free list while it is out"},
    Flaw{"wrong_merge", "merges with a buddy that is in use"},
    Flaw{"shares_pages", "every second chunk is mapped to the pages of the one before it"},
    Flaw{"double_free_elsewhere", "a block that another thread frees is cached twice"},
    Flaw{"misaligned", "addresses are 32 bytes off"},
    Flaw{"ignores_record_use", "nothing is waited for that record_use named"},
    Flaw{"ignores_last_use", "nothing is waited for on the stream that freed it"},
    Flaw{"shared_stream_lists", "chunks of one stream serve another at once"},
    Flaw{"no_sync_before_release", "chunks go back while streams may use them"},
    Flaw{"leaks_a_chunk", "the destructor forgets one"},
    Flaw{"wrong_release_size", "gives back a page more than it took"},
    Flaw{"double_release", "gives a chunk back twice"},
    Flaw{"bytes_too_small", "Block::bytes is half of what was asked for"},
    Flaw{"bytes_doubled", "Block::bytes is twice what there is"},
    Flaw{"drops_request", "Block::request stays empty"},
    Flaw{"throws_42", "throws an int out of allocate"},
    Flaw{"throws_from_noexcept", "throws an Error out of deallocate"},
    Flaw{"throws_out_of_range", "throws a library's exception out of allocate"},
    Flaw{"segfault", "writes to a null pointer"},
    Flaw{"deadlock", "locks its mutex twice where another stream used the block"},
    Flaw{"spin", "searches for ever in a chunk whose free blocks are too small"},
    Flaw{"recursion", "calls itself for ever"},
    Flaw{"slow", "takes a millisecond for each call"},
    Flaw{"never_releases", "throws OutOfMemory while its cache is full"},
    Flaw{"null_on_oom", "gives a null address instead of OutOfMemory"},
    Flaw{"wraps_sizes", "sizes near the end of the number range become small ones"},
    Flaw{"drops_cache_on_oom", "forgets its cached chunks when the device is full"},
    Flaw{"loses_the_retry", "takes a chunk that nobody gives back when the device refused one"},
    Flaw{"counts_before", "counts a block that it then does not get"},
    Flaw{"never_reuses", "freed blocks are not handed out again"},
    Flaw{"keeps_on_trim", "trim does nothing"},
    Flaw{"trims_all_or_nothing", "trim does nothing unless it may keep nothing"},
    Flaw{"trims_too_much", "trim gives everything back, whatever it may keep"},
    Flaw{"trim_lies", "trim says that it gave back twice as much"},
    Flaw{"report_lies", "cached_bytes is twice the truth"},
    Flaw{"counts_every_chunk", "counts a retry for each chunk that it takes"},
    Flaw{"host_leak", "a record of each block is never deleted"},
    Flaw{"host_log", "each call is written down in a vector that only grows"},
    Flaw{"host_leak_on_trim", "every second trim forgets to delete a record"},
    Flaw{"scribbles", "writes into live blocks"},
    Flaw{"random_placement", "where a block goes depends on how many allocators there were"},
    Flaw{"gap_in_walk", "walk leaves out the second block of a chunk"}};

inline std::vector<std::string> flaw_names() {
  std::vector<std::string> names;
  for (const Flaw& flaw : kFlaws) names.emplace_back(flaw.name);
  return names;
}

}  // namespace tenon::test
