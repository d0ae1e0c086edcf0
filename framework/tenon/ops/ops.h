// Every public operator.
#pragma once

#include <tenon/ops/attention.h>
#include <tenon/ops/convolution.h>
#include <tenon/ops/copy.h>
#include <tenon/ops/distance.h>
#include <tenon/ops/dropout.h>
#include <tenon/ops/embedding.h>
#include <tenon/ops/factory.h>
#include <tenon/ops/indexing.h>
#include <tenon/ops/linear.h>
#include <tenon/ops/loss.h>
#include <tenon/ops/normalization.h>
#include <tenon/ops/packing.h>
#include <tenon/ops/pinned.h>
#include <tenon/ops/pointwise.h>
#include <tenon/ops/pooling.h>
#include <tenon/ops/reduction.h>
#include <tenon/ops/rnn.h>
#include <tenon/ops/view.h>
#include <tenon/tensor/literal.h>
