// Writes one event of each kind for read_back.py, which knows the same figures.
#include <tenon/tenon.h>

#include <cmath>
#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: " << arguments[0] << " FOLDER\n";
    return 2;
  }
  tenon::SummaryWriter writer(arguments[1]);
  for (int step = 0; step < 200; ++step) {
    writer.add_scalar("curve/sine", std::sin(0.1 * step), step, 1000.0 + step);
    writer.add_scalars("curve/both", {{"sine", std::sin(0.1 * step)}, {"cosine", std::cos(0.1 * step)}}, step);
  }
  const tenon::Tensor values = (tenon::arange(1000, tenon::kFloat64) * 0.7).sin() * 3;
  writer.add_histogram("values/fixed", values, 1);
  writer.add_histogram("values/auto", values, 2, "auto");
  const tenon::Tensor bytes = tenon::arange(3 * 6 * 10).reshape({3, 6, 10}).to(tenon::Dtype::kUInt8);
  writer.add_image("image/bytes", bytes, 3);
  writer.add_image("image/floats", bytes.to(tenon::kFloat32) / 200, 4);
  writer.add_images("image/batch", bytes.reshape({10, 1, 6, 3}), 5);
  writer.add_text("notes", "a **bold** word", 6);
  writer.add_hparams({{"lr", 0.1}, {"batch_size", 32}, {"nesterov", true}, {"allocator", "caching"}},
                     {{"hparam/loss", 0.5}, {"hparam/peak", 1e9}}, "trial");
  writer.close();
}
