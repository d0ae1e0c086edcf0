// Attributes of recurrent cells.
#pragma once

namespace tenon {

/// rnn_cell and rnn_cell_backward; the other cells have none.
struct RecurrentAttributes {
  bool relu = false;  ///< instead of tanh
};

}  // namespace tenon
