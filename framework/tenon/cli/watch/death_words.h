// How it is said that an allocator crashed, or hangs: of a run and of an estimate.
#pragma once

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

}  // namespace tenon::cli
