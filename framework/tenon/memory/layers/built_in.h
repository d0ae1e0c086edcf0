// The built-in layers, one maker each: the rows of the table in table.cpp.
#pragma once

#include <tenon/memory/layers/layer.h>

namespace tenon {

LayerInfo align_layer();
LayerInfo budget_layer();
LayerInfo guard_layer();
LayerInfo inject_layer();
LayerInfo limit_layer();
LayerInfo retry_layer();
LayerInfo route_layer();
LayerInfo stats_layer();
LayerInfo trace_layer();
LayerInfo track_layer();

}  // namespace tenon
