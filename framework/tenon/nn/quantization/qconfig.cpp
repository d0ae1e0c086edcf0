// The settings that have a name.
#include <tenon/nn/quantization/qconfig.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

namespace tenon::nn::quantization {
namespace {

template <class Kind>
ObserverMaker made_with(const ObserverOptions& options) {
  return [options] { return std::make_unique<Kind>(options); };
}

}  // namespace

QConfig get_default_qconfig(std::string_view backend) {
  const bool reduces = backend == "x86" || backend == "fbgemm";
  if (!reduces && backend != "onednn" && backend != "qnnpack")
    throw Error(
        fmt::format("no default settings of quantization for '{}'; there are x86, fbgemm, onednn, qnnpack", backend));
  const ObserverOptions weight{.dtype = kInt8, .symmetric = true};
  return {made_with<HistogramObserver>({.reduce_range = reduces}),
          backend == "qnnpack" ? made_with<MinMaxObserver>(weight) : made_with<PerChannelMinMaxObserver>(weight)};
}

}  // namespace tenon::nn::quantization
