// Everything of optim.
#pragma once

#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/grad_scaler.h>
#include <tenon/optim/in_backward.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/master_weights.h>
#include <tenon/optim/optimizer.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>
#include <tenon/optim/sharded_optimizer.h>
#include <tenon/optim/zero_redundancy_optimizer.h>
