// What the options of a parameter group take from those of its optimiser.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

namespace tenon::optim {

/// Gives `own` the options of `defaults` wherever it has what `made`, options as they are constructed, has. `fields`
/// makes a tuple of references to the options to look at. Does nothing where `defaults` are of another type.
template <class Options, class AnyOptions, class Fields>
void inherit_fields(Options& own, const AnyOptions& defaults, Options made, Fields fields) {
  const auto* const of_optimizer = dynamic_cast<const Options*>(&defaults);
  if (of_optimizer == nullptr) return;
  Options from = *of_optimizer;
  auto target = fields(own);
  const auto initial = fields(made), given = fields(from);
  [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    const auto inherit = [](auto& option, const auto& as_made, const auto& inherited) {
      if (option == as_made) option = inherited;
    };
    (inherit(std::get<kAt>(target), std::get<kAt>(initial), std::get<kAt>(given)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(target)>>());
}

}  // namespace tenon::optim
