// What every fuzz target shares: bytes in, a trace or a refusal out, nothing else.
#pragma once

#include <tenon/replay/formats/readers.h>

#include <cstddef>
#include <cstdint>

namespace tenon::fuzz {

/// Runs a reader over the bytes as if they were a file. A TraceError is the expected answer to most of them.
template <class Reader>
int run(const std::uint8_t* data, std::size_t size, Reader&& reader) {
  try {
    replay::InputFile input("input", {data, size});
    reader(input);
  } catch (const replay::TraceError&) {
  }
  return 0;
}

}  // namespace tenon::fuzz
