// Optimiser archives as libtorch wrote them before 1.5: one list of tensors per quantity ("momentum_buffers/0" …, with
// "momentum_buffers/size"), in the order of the parameters.
#pragma once

#include <tenon/nn/serialize/archive.h>

#include <cstddef>
#include <vector>

namespace tenon::optim {

/// The state of each parameter, from the first on, in today's form; empty where the archive holds none of the old
/// lists. Throws Error for a list that is longer than the parameters or lacks an element.
std::vector<OutputArchive> states_of_old_archive(InputArchive& archive, std::size_t parameters);

}  // namespace tenon::optim
