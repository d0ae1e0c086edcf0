// Faults in PTX text: a line of a kernel is another one, or is gone.
#include "support/emulated_cuda/ptx/faults.h"

#include "support/emulated_cuda/misuse.h"

namespace tenon::emulated_cuda::ptx {

namespace {

/// Puts the fault into the body that begins at `begin` and ends before `end`.
void put_into(std::string& text, std::size_t begin, std::size_t end, const Fault& fault) {
  std::size_t at = begin;
  for (int n = 0; n < fault.nth; ++n) {
    at = text.find(fault.line, n == 0 ? at : at + 1);
    if (at == std::string::npos || at >= end)
      misuse("kernel " + fault.kernel + " has no line " + std::to_string(fault.nth) + " with '" + fault.line + "'");
  }
  if (!fault.becomes.empty()) {
    text.replace(at, fault.line.size(), fault.becomes);
    return;
  }
  const std::size_t first = text.rfind('\n', at) + 1;
  text.erase(first, text.find('\n', at) - first);
}

}  // namespace

std::string with_faults(std::string text, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    for (std::size_t entry = text.find(".entry "); entry != std::string::npos;
         entry = text.find(".entry ", entry + 1)) {
      const std::string name = text.substr(entry, text.find('(', entry) - entry);
      const std::size_t body = text.find("\n{", entry);
      if (name.find(fault.kernel) != std::string::npos) put_into(text, body, text.find("\n}", body), fault);
    }
  }
  return text;
}

}  // namespace tenon::emulated_cuda::ptx
