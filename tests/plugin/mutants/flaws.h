// The flaws of the buddy allocator's mutants, by the names that its option `flaw` takes.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

inline constexpr std::array<std::string_view, 38> kFlaws = {
    "none",                    // as good as it gets
    "shifted_overlap",         // now and then a block begins 512 bytes before its place
    "rare_double",             // every 40th block stays in the free list while it is out
    "wrong_merge",             // merges with a buddy that is in use
    "double_free_elsewhere",   // a block that another thread frees is cached twice
    "misaligned",              // addresses are 32 bytes off
    "ignores_record_use",      // nothing is waited for that record_use named
    "ignores_last_use",        // nor the stream that freed it
    "shared_stream_lists",     // chunks of one stream serve another at once
    "no_sync_before_release",  // chunks go back while streams may use them
    "leaks_a_chunk",           // the destructor forgets one
    "wrong_release_size",      // gives back a page more than it took
    "double_release",          // gives a chunk back twice
    "bytes_too_small",         // Block::bytes is half of what was asked for
    "bytes_doubled",           // or twice what there is
    "drops_request",           // Block::request stays empty
    "throws_42",               // out of allocate
    "throws_from_noexcept",    // an Error out of deallocate
    "throws_out_of_range",     // a library's exception out of allocate
    "segfault",                // writes to a null pointer
    "deadlock",                // locks its mutex twice where another stream used the block
    "spin",                    // searches for ever in a chunk whose free blocks are too small
    "recursion",               // calls itself for ever
    "slow",                    // a millisecond for each call
    "never_releases",          // OutOfMemory while its cache is full
    "null_on_oom",             // a null address instead of OutOfMemory
    "wraps_sizes",             // sizes near the end of the number range become small ones
    "drops_cache_on_oom",      // forgets its cached chunks when the device is full
    "loses_the_retry",         // takes a chunk that nobody gives back when the device refused one
    "counts_before",           // counts a block that it then does not get
    "never_reuses",            // freed blocks are not handed out again
    "keeps_on_trim",           // trim does nothing
    "trim_lies",               // and says that it gave back twice as much
    "report_lies",             // cached_bytes is twice the truth
    "host_leak",               // a record of each block is never deleted
    "scribbles",               // writes into live blocks
    "random_placement",        // where a block goes depends on how many allocators there were
    "gap_in_walk",             // the last block of each chunk is not shown
};

inline std::vector<std::string> flaw_names() { return {kFlaws.begin(), kFlaws.end()}; }

}  // namespace tenon::test
