// Every public operator. Only the headers of ops/support and those that operators are written with are left out.
#pragma once

#include <tenon/ops/indexing/embedding_bag.h>
#include <tenon/ops/indexing/enumeration.h>
#include <tenon/ops/indexing/index_put.h>
#include <tenon/ops/indexing/repeat_interleave.h>
#include <tenon/ops/indexing/search.h>
#include <tenon/ops/indexing/sets.h>
#include <tenon/ops/linalg/linalg.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/linalg/products.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/nn/margin_loss.h>
#include <tenon/ops/nn/placed_pooling.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/out.h>
#include <tenon/ops/pointwise/clamp.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/quantized/products.h>
#include <tenon/ops/quantized/quantize.h>
#include <tenon/ops/reduce/counting.h>
#include <tenon/ops/reduce/order_statistics.h>
#include <tenon/ops/reduce/scan.h>
#include <tenon/ops/reduce/summary.h>
#include <tenon/ops/special.h>
