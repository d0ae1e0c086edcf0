// Courses of the learning rate by name.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/optim/schedulers.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

/// Those that `train.schedule` may name; the first one is what a file that names none has.
TENON_API std::vector<std::string> schedule_names();

/// As the section [train] says, laid out for so many steps: the rates are those of the first one, and step() goes on to
/// the next. The optimiser has to outlive it.
TENON_API std::unique_ptr<optim::LRScheduler> make_schedule(const Options& train, optim::Optimizer& optimizer,
                                                            std::int64_t steps);

}  // namespace tenon::train
