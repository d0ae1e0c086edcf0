// The operators that modules, optimisers and data sets use: enough for most code, and quicker to parse than all_ops.h.
#pragma once

#include <tenon/ops/create/factory.h>
#include <tenon/ops/create/pinned.h>
#include <tenon/ops/indexing/embedding.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/distance.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/convolution.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/nn/loss.h>
#include <tenon/ops/nn/normalization.h>
#include <tenon/ops/nn/pooling.h>
#include <tenon/ops/nn/recurrent/packing.h>
#include <tenon/ops/nn/recurrent/rnn.h>
#include <tenon/ops/pointwise/activation.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/softmax.h>
#include <tenon/ops/reduce/sorting.h>
#include <tenon/ops/shape/copy.h>
#include <tenon/ops/shape/view.h>
#include <tenon/tensor/literal.h>
