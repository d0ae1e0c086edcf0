// What finds each mutant: the check of the kit that is there for its flaw, and what disqualifies it in a replay.
#pragma once

#include <ostream>

namespace tenon::test {

struct KitFinding {
  const char* flaw;
  const char* check;
  const char* words;  ///< in the failure
};
inline void PrintTo(const KitFinding& finding, std::ostream* out) { *out << finding.flaw << ' ' << finding.check; }

inline constexpr KitFinding kKitFindings[] = {
    {"shifted_overlap", "never_overlaps", "overlaps the live block ["},
    {"rare_double", "never_overlaps", "overlaps the live block ["},
    {"wrong_merge", "never_overlaps", "overlaps the live block ["},
    {"shares_pages", "never_overlaps", "shares physical memory with the live block ["},
    {"double_free_elsewhere", "takes_frees_from_other_threads", "overlaps a live one"},
    {"double_free_elsewhere", "survives_dying_threads", "overlaps a live one"},
    {"misaligned", "aligns", "at an alignment of 64"},
    {"ignores_record_use", "respects_streams", "has not got there yet"},
    {"ignores_last_use", "respects_streams", "has not got there yet"},
    {"shared_stream_lists", "respects_streams", "has not got there yet"},
    {"no_sync_before_release", "respects_streams", "went back to the device while stream"},
    {"leaks_a_chunk", "frees_all_at_the_end", "bytes were not given back"},
    {"wrong_release_size", "gives_back_what_it_took", "it was acquired with"},
    {"double_release", "gives_back_what_it_took", "never acquired, or released before"},
    {"bytes_too_small", "serves_every_size", "gave a block of"},
    {"bytes_doubled", "never_overlaps", "overlaps the live block ["},
    {"bytes_doubled", "counts", "were taken from the device"},
    {"drops_request", "keeps_requests", "request.bytes = 0"},
    {"throws_42", "never_overlaps", "allocate threw int"},
    {"throws_from_noexcept", "never_overlaps", "in deallocate("},
    {"throws_out_of_range", "never_overlaps", "threw std::out_of_range (\"map::at\")"},
    {"segfault", "never_overlaps", "SIGSEGV"},
    {"deadlock", "respects_streams", "did not come back within"},
    {"spin", "never_overlaps", "did not come back within"},
    {"recursion", "never_overlaps", "endless recursion"},
    {"never_releases", "retries_before_out_of_memory", "release what is cached"},
    {"null_on_oom", "refuses_huge_sizes", "null address"},
    {"wraps_sizes", "refuses_huge_sizes", "were granted"},
    {"drops_cache_on_oom", "retries_before_out_of_memory", "release what is cached"},
    {"drops_cache_on_oom", "survives_a_small_device", "were not given back"},
    {"counts_before", "survives_a_dead_device", "a block is counted"},
    {"loses_the_retry", "survives_one_failure", "were not given back"},
    {"never_reuses", "reuses_memory", "needs"},
    {"keeps_on_trim", "trims", "still reserved"},
    {"keeps_on_trim", "survives_out_of_memory", "needs"},
    {"trims_all_or_nothing", "trims", "still reserved"},
    {"trims_too_much", "trims", "of them back"},
    {"trim_lies", "trims", "the source got"},
    {"report_lies", "reports_truly", "cached_bytes"},
    {"counts_every_chunk", "reports_truly", "gives retries as"},
    {"host_leak", "needs_no_growing_memory", "the host's memory grows by"},
    {"host_log", "needs_no_growing_memory", "the host's memory grows by"},
    {"host_leak_on_trim", "needs_no_growing_memory", "the host's memory grows by"},
    {"scribbles", "keeps_payloads", "changed"},
    {"random_placement", "is_deterministic", "differ from allocation"},
    {"gap_in_walk", "shows_its_layout", "where the one before it ends"},
};

/// A device so small that the history of exhaustion fills it: see replay_finds_test.cpp.
inline constexpr const char* kSmallCapacity = "100MiB";

struct ReplayFinding {
  const char* flaw;
  const char* words;              ///< in the row
  bool is_of_exhaustion = false;  ///< with kSmallCapacity alone
};
inline void PrintTo(const ReplayFinding& finding, std::ostream* out) { *out << finding.flaw; }

inline constexpr ReplayFinding kReplayFindings[] = {
    {"shifted_overlap", "overlaps the live block"},
    {"rare_double", "overlaps the live block"},
    {"wrong_merge", "overlaps the live block"},
    {"shares_pages", "whose physical memory is also that of the live block"},
    {"misaligned", "is not aligned to 64"},
    {"ignores_record_use", "may still use"},
    {"ignores_last_use", "(the last use told at the free)"},
    {"shared_stream_lists", "may still use"},
    {"no_sync_before_release", "may still use"},
    {"leaks_a_chunk", "when it was destroyed"},
    {"wrong_release_size", "which never gave that segment"},
    {"double_release", "is disqualified"},
    {"bytes_too_small", "bytes for a request of"},
    {"bytes_doubled", "overlaps the live block"},
    {"drops_request", "the block says request.bytes = 0"},
    {"throws_42", ") threw int"},
    {"throws_from_noexcept", "crashed: Aborted, an exception"},
    {"throws_out_of_range", ") threw std::out_of_range"},
    {"segfault", "crashed: Segmentation fault (at event"},
    {"recursion", "crashed: Segmentation fault, the stack is full: endless recursion?"},
    {"deadlock", "did not end within 1 s (at event"},
    {"spin", "did not end within 1 s (at event"},
    {"null_on_oom", "handed out 0 bytes for a request of", true},
    {"drops_cache_on_oom", "when it was destroyed", true},
};

}  // namespace tenon::test
