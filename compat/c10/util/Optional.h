// c10/util/Optional.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
