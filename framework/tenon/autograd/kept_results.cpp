// Which results are kept, and that they are what the second run asks for.
#include <tenon/autograd/kept_results.h>

#include <tenon/core/options.h>
#include <tenon/tensor/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace tenon {
namespace {

/// By which a policy knows an operator: both forms of GELU are one there.
std::string_view name_in_pytorch(std::string_view op) { return op == "gelu_tanh" ? "gelu" : op; }

}  // namespace

namespace autograd {

void KeptResults::begin(bool again) {
  again_ = again;
  next_ = 0;
  if (!again) entries_.clear();
}

bool KeptResults::take(const char* op, std::initializer_list<Tensor*> results) {
  if (!again_) return false;
  if (next_ >= entries_.size() || std::string_view(entries_[next_].op) != op) {
    throw Error(std::string("checkpoint: the recomputation ran '") + op + "' where the first run did not; the " +
                "function must do the same both times");
  }
  Entry& entry = entries_[next_++];
  if (entry.results.empty()) return false;
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    if (entry.results[i].impl().version() != entry.versions[i]) {
      throw Error(std::string("checkpoint: a result of '") + op +
                  "' is kept for the recomputation and was written to by an inplace operation since: leave that out, " +
                  "or let the policy not keep it");
    }
  }
  std::size_t i = 0;
  for (Tensor* result : results) *result = std::move(entry.results[i++]);
  entry.results.clear();
  return true;
}

void KeptResults::keep(const char* op, std::initializer_list<Tensor*> results) {
  if (again_) return;
  Entry entry{.op = op, .results = {}, .versions = {}};
  if (policy_(name_in_pytorch(op))) {
    for (const Tensor* result : results) {
      entry.results.push_back(alias_of(*result));
      entry.versions.push_back(result->impl().version());
    }
  }
  entries_.push_back(std::move(entry));
}

}  // namespace autograd

const std::vector<std::string>& keepable_operators() {
  static const std::vector<std::string> names = {
      "mm",
      "bmm",
      "addmm",
      "baddbmm",
      "convolution",
      "scaled_dot_product_attention",
      "softmax",
      "log_softmax",
      "layer_norm",
      "group_norm",
      "batch_norm",
      "max_pool",
      "adaptive_max_pool",
      "avg_pool",
      "adaptive_avg_pool",
#define TENON_UNARY(Row, name, ...) #name,
#define TENON_UNARY_WITH(Row, name, ...) #name,
#define TENON_UNARY_KERNEL(Row, name, ...) #name,
#include <tenon/kernel/rows/unary.inl>
#define TENON_BINARY(Row, name, ...) #name,
#define TENON_BINARY_KERNEL(Row, name, ...) #name,
#include <tenon/kernel/rows/binary.inl>
  };
  return names;
}

CheckpointPolicy keep_results_of(std::vector<std::string> operators) {
  for (std::string& name : operators) {
    if (std::ranges::find(keepable_operators(), name) == keepable_operators().end()) {
      const std::string near = nearest_name(name, keepable_operators());
      throw Error(fmt::format(
          "checkpoint keeps no results of an operator '{}': {}", name,
          near.empty() ? "keepable_operators() has those of which it can" : fmt::format("did you mean '{}'?", near)));
    }
    name = name_in_pytorch(name);
  }
  return [operators = std::move(operators)](std::string_view op) {
    return std::ranges::find(operators, op) != operators.end();
  };
}

}  // namespace tenon
