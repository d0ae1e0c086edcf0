// The CUDA plugin with other options than those it was opened with.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/runtime/plugins/plugins.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

/// Closes every device and opens the plugin with these options when it is next used. No storage may live, of the host
/// neither. `closed` runs while nothing is open.
template <class Closed>
void reopen_cuda(const std::vector<std::pair<std::string, std::string>>& settings, const Closed& closed) {
  close_devices();
  Backend& backend = find_backend("cuda");
  backend.shutdown();
  closed();
  Options options(backend.options());
  for (const auto& [name, value] : settings) options.set_text(name, value);
  backend.configure(options);
}

}  // namespace tenon::test
