// By the exact type: what is derived from Error elsewhere has a meaning for whoever catches it.
#include <tenon/runtime/plugins/factory_errors.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

namespace tenon {

AllocatorInfo with_named_errors(AllocatorInfo info, const std::filesystem::path& plugin) {
  const std::string who = fmt::format("allocator '{}' ({}) was not made: ", info.name, plugin.string());
  info.create = [create = std::move(info.create), who](const AllocatorContext& context) {
    try {
      std::unique_ptr<Allocator> made = create(context);
      if (made == nullptr) throw Error("its factory returned nothing");
      return made;
    } catch (const Error& error) {
      const std::type_info& type = typeid(error);
      if (type == typeid(ConfigError)) throw ConfigError(who + error.what());
      if (type == typeid(PluginError)) throw PluginError(who + error.what());
      const bool is_text = type == typeid(Error) || type == typeid(IndexError) || type == typeid(ValueError) ||
                           type == typeid(TypeError) || type == typeid(NotImplementedError);
      if (is_text) throw Error(who + error.what());
      throw;
    }
  };
  return info;
}

}  // namespace tenon
