// Three leaks that every guide warns of, one after the other: each is found while the loop runs, and named with its
// line.
#include <tenon/tenon.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using tenon::Tensor;

namespace {

/// Ten steps of a loop, watched: what grows, and who holds it.
void watched(const char* what, const std::function<void()>& step) {
  tenon::memory::LeakWatch watch;
  for (int i = 0; i < 10; ++i) {
    step();
    watch.step();
  }
  std::printf("%s\n", what);
  for (const tenon::memory::Leak& leak : watch.report().leaks) {
    const std::string site = leak.site.substr(0, leak.site.find(" < "));
    std::printf("  %s: %.0f bytes and %.0f nodes a step, %s\n  %s\n", std::string(name_of(leak.kind)).c_str(),
                leak.bytes_per_step, leak.nodes_per_step, site.substr(site.rfind('(')).c_str(), leak.sentence.c_str());
  }
}

}  // namespace

int main() {
  tenon::nn::Linear model(64, 64);
  const auto loss = [&] { return model->forward(tenon::ones({32, 64})).square().mean(); };

  Tensor total = tenon::zeros({});
  watched("total_loss += loss", [&] {
    const Tensor now = loss();
    now.backward();
    total += now;
  });

  std::vector<Tensor> kept;
  watched("a slice of a result is kept", [&] {
    const tenon::NoGradGuard no_grad;
    kept.push_back(model->forward(tenon::ones({32, 64})).narrow(0, 0, 1));
  });

  watched("a hook captures its own tensor", [&] {
    const Tensor hidden = model->forward(tenon::ones({32, 64}));
    hidden.register_hook([hidden](const Tensor& gradient) { return gradient + hidden.sign(); });
    hidden.mean().backward();
  });

  watched("nothing leaks", [&] {
    model->zero_grad();
    loss().backward();
  });

  const tenon::memory::LiveRecording recording;
  const auto before = tenon::memory::mark("before");
  kept.push_back(tenon::ones({256, 256}));
  const tenon::memory::MarkDiff grown = tenon::memory::diff(before, tenon::memory::mark("after"));
  std::printf("from '%s' to '%s': %lld bytes more\n", grown.from.c_str(), grown.to.c_str(),
              static_cast<long long>(grown.bytes));
}
