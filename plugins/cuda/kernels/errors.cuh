// How a kernel says that its data is wrong: Note [Late errors] in error_word.h.
//
//   constexpr ErrorText kOutOfBounds{ErrorText::Kind::kIndexError, "index", "index %lld is out of bounds for …"};
//   launch(context, shape, index_kernel, …, errors(context, kOutOfBounds));   // ErrorReport is a parameter
//   if (index >= size) return report.raise(index, dim, size);                 // on the device
//
// A kernel that has raised an error must do no harm: it writes nothing, or zeros, for the element in question.
#pragma once

#include "error_word.h"

#include <tenon/kernel/kernel.h>

namespace tenon::cuda {

struct ErrorReport {
  ErrorWord* word;
  const ErrorText* text;

#if defined(__CUDACC__)
  /// The first error since the last synchronisation is kept.
  __device__ void raise(long long a = 0, long long b = 0, long long c = 0) const {
    if (atomicCAS(&word->state, unsigned{ErrorWord::kNone}, unsigned{ErrorWord::kWriting}) != ErrorWord::kNone) return;
    word->text = text;
    word->numbers[0] = a;
    word->numbers[1] = b;
    word->numbers[2] = c;
    __threadfence_system();
    atomicExch(&word->state, unsigned{ErrorWord::kWritten});
  }
#endif
};

/// `text` must be static.
ErrorReport errors(KernelContext& context, const ErrorText& text);

}  // namespace tenon::cuda
