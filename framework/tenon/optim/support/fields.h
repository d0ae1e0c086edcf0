// The options of an optimiser, named once: what compares, inherits, writes and reads them goes through that list.
//
//   constexpr auto adam_fields = [](auto& options) { return std::tuple(Field{"lr", options.lr()}, …); };
#pragma once

#include <tenon/nn/serialize/archive.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

namespace tenon::optim {

/// An option and the name that archives have of it.
template <class T>
struct Field {
  const char* name;
  T& value;
};
/// Of the option's type.
template <class T>
Field(const char*, T&) -> Field<T>;

/// Whether every option is the same.
template <class Options, class Fields>
bool same_fields(const Options& a, const Options& b, Fields fields) {
  return std::apply(
      [&](const auto&... left) {
        return std::apply([&](const auto&... right) { return ((left.value == right.value) && ...); }, fields(b));
      },
      fields(a));
}

/// Gives `own` the options of `defaults` wherever it has what `made`, options as they are constructed, has. Does
/// nothing where `defaults` are of another type.
template <class Options, class AnyOptions, class Fields>
void inherit_fields(Options& own, const AnyOptions& defaults, const Options& made, Fields fields) {
  const auto* const of_optimizer = dynamic_cast<const Options*>(&defaults);
  if (of_optimizer == nullptr) return;
  const auto inherit = [](const auto& option, const auto& initial, const auto& inherited) {
    if (option.value == initial.value) option.value = inherited.value;
  };
  std::apply(
      [&](const auto&... option) {
        std::apply(
            [&](const auto&... initial) {
              std::apply([&](const auto&... inherited) { (inherit(option, initial, inherited), ...); },
                         fields(*of_optimizer));
            },
            fields(made));
      },
      fields(own));
}

namespace archived {

/// An option under its name.
inline void write(OutputArchive& archive, const std::string& name, const std::string& text) {
  archive.write_text(name, text);
}
/// Two numbers are NAME1 and NAME2, as in libtorch ("beta1").
inline void write(OutputArchive& archive, const std::string& name, const std::tuple<double, double>& pair) {
  archive.write(name + "1", std::get<0>(pair));
  archive.write(name + "2", std::get<1>(pair));
}
template <class Number>
requires std::is_arithmetic_v<Number>
void write(OutputArchive& archive, const std::string& name, Number number) { archive.write(name, number); }
/// Nothing is written of what has no value.
template <class T>
void write(OutputArchive& archive, const std::string& name, const std::optional<T>& value) {
  if (value) write(archive, name, *value);
}

/// What write() wrote, of each type. Throws Error where it is missing; an option without a value has none then.
inline void read(const InputArchive& archive, const std::string& name, bool& value) {
  value = archive.read_boolean(name);
}
inline void read(const InputArchive& archive, const std::string& name, std::int64_t& value) {
  value = archive.read_integer(name);
}
inline void read(const InputArchive& archive, const std::string& name, double& value) {
  value = archive.read_real(name);
}
inline void read(const InputArchive& archive, const std::string& name, std::string& value) {
  value = archive.read_text(name);
}
inline void read(const InputArchive& archive, const std::string& name, std::tuple<double, double>& pair) {
  pair = {archive.read_real(name + "1"), archive.read_real(name + "2")};
}
template <class T>
void read(const InputArchive& archive, const std::string& name, std::optional<T>& value) {
  value.reset();
  if (archive.try_read_raw(name)) read(archive, name, value.emplace());
}

}  // namespace archived

/// Writes every option under its name.
template <class Options, class Fields>
void write_fields(OutputArchive& archive, const Options& options, Fields fields) {
  std::apply([&](const auto&... field) { (archived::write(archive, field.name, field.value), ...); }, fields(options));
}
/// Reads what write_fields() wrote. Throws Error for what is missing or of another type.
template <class Options, class Fields>
void read_fields(const InputArchive& archive, Options& options, Fields fields) {
  std::apply([&](const auto&... field) { (archived::read(archive, field.name, field.value), ...); }, fields(options));
}

}  // namespace tenon::optim
