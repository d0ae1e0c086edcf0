// What one rank remembers of a parameter, sent to another.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/optim/optimizer.h>

#include <memory>

namespace tenon::optim {

/// Sends the state, or that there is none (null).
void send_state(Communicator& ranks, const OptimizerParamState* state, int to);
/// What send_state() of the rank `from` sends, in host memory, of the optimiser's own type; null: there is none.
std::unique_ptr<OptimizerParamState> receive_state(Communicator& ranks, const Optimizer& optimizer, int from);

}  // namespace tenon::optim
