// The functions of libtorch's front end that modules, optimisers and data sets do without: ops.h has the others.
#pragma once

#include <tenon/ops/bounds.h>
#include <tenon/ops/counting.h>
#include <tenon/ops/enumeration.h>
#include <tenon/ops/linalg.h>
#include <tenon/ops/margin_loss.h>
#include <tenon/ops/numeric.h>
#include <tenon/ops/order_statistics.h>
#include <tenon/ops/out.h>
#include <tenon/ops/placement.h>
#include <tenon/ops/products.h>
#include <tenon/ops/rearrange.h>
#include <tenon/ops/scan.h>
#include <tenon/ops/search.h>
#include <tenon/ops/sets.h>
#include <tenon/ops/summary.h>
