// What is done so often that a branch shows, so and so many times: off_cost.py counts its instructions.
//
//   tenon_profiler_off_cost empty|add|add_recorded|select|chain TIMES
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace {

void keep(const tenon::Tensor& tensor) { asm volatile("" : : "r"(&tensor) : "memory"); }

tenon::Tensor leaf() { return tenon::ones({1}, tenon::TensorOptions().requires_grad(true)); }

const std::map<std::string, std::function<void(long)>> kPrograms = {
    {"empty",
     [](long times) {
       for (long i = 0; i < times; ++i) keep(tenon::empty({1}));
     }},
    {"add",
     [](long times) {
       const tenon::NoGradGuard no_grad;
       const tenon::Tensor a = tenon::ones({1}), b = tenon::ones({1});
       for (long i = 0; i < times; ++i) keep(a.add(b));
     }},
    {"add_recorded",
     [](long times) {
       const tenon::Tensor a = leaf(), b = leaf();
       for (long i = 0; i < times; ++i) keep(a.add(b));
     }},
    {"select",
     [](long times) {
       const tenon::Tensor a = tenon::ones({4, 4});
       for (long i = 0; i < times; ++i) keep(a.select(0, 1));
     }},
    // A product and a sum in turn, forward and backward: 1,000 operators each time.
    {"chain",
     [](long times) {
       const tenon::Tensor x = leaf(), c = tenon::full({1}, 0.999);
       for (long i = 0; i < times; i += 1000) {
         tenon::Tensor y = x;
         for (int pair = 0; pair < 500; ++pair) y = (y * c) + c;
         y.backward();
         x.mutable_grad().reset();
       }
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto program = argc == 3 ? kPrograms.find(argv[1]) : kPrograms.end();
  if (program == kPrograms.end()) {
    std::fprintf(stderr, "usage: %s empty|add|add_recorded|select|chain TIMES\n", argv[0]);
    return 2;
  }
  tenon::set_num_threads(1);
  program->second(std::strtol(argv[2], nullptr, 10));
}
