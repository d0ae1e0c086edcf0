// torch/optim/schedulers/reduce_on_plateau_scheduler.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
