// How it is said that an allocator crashed, or hangs: of a run and of an estimate.
#pragma once

#include <tenon/train/experiment_result.h>

#include <string>

namespace tenon::cli {

/// "allocator 'mine' (/a/mine.so)"; without a file the name alone.
std::string titled(const std::string& allocator, const std::string& file);

/// `during`: ", in step 1 of 4", or nothing.
std::string hang_sentence(const std::string& allocator, const std::string& call, double seconds,
                          const std::string& during = {});

/// `what`: "the run". `call`: empty where the allocator was in none.
std::string crash_sentence(const std::string& what, const std::string& allocator, const std::string& call,
                           const std::string& cause, const std::string& during = {});

/// The same of one that ended the process with `code`; -1: nobody knows it.
std::string exit_sentence(const std::string& what, const std::string& allocator, const std::string& call, int code,
                          const std::string& during);

/// "finished: 3 of 40 steps, loss 2.3026, peak reserved 1.50 MiB".
std::string finished_sentence(const ExperimentResult& result);

}  // namespace tenon::cli
