// What nearly every operator is written with: its kernel's call, its recording, and the dtypes and sizes of its result.
#pragma once

#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/support/kernel_call.h>
#include <tenon/ops/support/promotion.h>
#include <tenon/ops/support/recording.h>
#include <tenon/ops/support/shapes.h>
