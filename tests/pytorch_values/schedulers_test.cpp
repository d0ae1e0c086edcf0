// Learning rates over twenty steps, as PyTorch's schedules give them.
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>

#include "pytorch_values/recorded.h"

namespace tenon::test {
namespace {

using nlohmann::json;

std::unique_ptr<optim::LRScheduler> make(const std::string& name, const json& o, optim::Optimizer& optimizer) {
  const auto number = [&](const char* key) { return o[key].get<double>(); };
  if (name == "StepLR")
    return std::make_unique<optim::StepLR>(optimizer, o["step_size"].get<unsigned>(), number("gamma"));
  if (name == "MultiStepLR")
    return std::make_unique<optim::MultiStepLR>(optimizer, o["milestones"].get<std::vector<std::int64_t>>(),
                                                number("gamma"));
  if (name == "CosineAnnealingLR")
    return std::make_unique<optim::CosineAnnealingLR>(optimizer, o["T_max"].get<std::int64_t>(), number("eta_min"));
  if (name == "LinearLR")
    return std::make_unique<optim::LinearLR>(optimizer, number("start_factor"), number("end_factor"),
                                             o["total_iters"].get<std::int64_t>());
  return std::make_unique<optim::OneCycleLR>(optimizer, number("max_lr"), o["total_steps"].get<std::int64_t>(),
                                             number("pct_start"), number("div_factor"), number("final_div_factor"));
}

double rate_of(optim::Optimizer& optimizer) { return optimizer.param_groups()[0].options().get_lr(); }

TEST(PyTorchValues, OfSchedules) {
  const json file = recorded("schedulers");
  ASSERT_GT(file["cases"].size(), 20u);
  for (const json& recorded_case : file["cases"]) {
    SCOPED_TRACE(recorded_case["scheduler"].get<std::string>() + " " + recorded_case["options"].dump());
    optim::SGD sgd({tenon::zeros({1}).requires_grad_()}, optim::SGDOptions(0.8));
    const auto schedule = make(recorded_case["scheduler"], recorded_case["options"], sgd);
    const std::vector<double> rates = numbers_of(recorded_case["rates"]);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      if (step > 0) schedule->step();
      EXPECT_NEAR(rate_of(sgd), rates[step], 1e-9) << "after " << step << " steps";
    }
  }
}

// A factor and a least rate are floats in libtorch, whose interface this is: hence seven digits.
TEST(PyTorchValues, OfPlateaus) {
  using Plateau = optim::ReduceLROnPlateauScheduler;
  const json file = recorded("schedulers");
  ASSERT_GT(file["plateaus"].size(), 20u);
  for (const json& recorded_case : file["plateaus"]) {
    const json& o = recorded_case["options"];
    SCOPED_TRACE(o.dump());
    optim::SGD sgd({tenon::zeros({1}).requires_grad_()}, optim::SGDOptions(0.8));
    Plateau schedule(sgd, o["mode"] == "min" ? Plateau::min : Plateau::max, o["factor"].get<float>(),
                     o["patience"].get<int>(), o["threshold"].get<double>(),
                     o["threshold_mode"] == "rel" ? Plateau::rel : Plateau::abs, o["cooldown"].get<int>(),
                     {o["min_lr"].get<float>()}, o["eps"].get<double>());
    for (std::size_t step = 0; step < file["metrics"].size(); ++step) {
      schedule.step(file["metrics"][step].get<float>());
      EXPECT_NEAR(rate_of(sgd), recorded_case["rates"][step].get<double>(), 1e-7) << "after metric " << step;
    }
  }
}

}  // namespace
}  // namespace tenon::test
