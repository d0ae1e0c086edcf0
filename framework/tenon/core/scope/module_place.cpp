// Names of modules, with the root's in front where a path alone is ambiguous.
#include <tenon/core/scope/module_place.h>

#include <map>
#include <vector>

namespace tenon::scopes {

std::set<std::string> roots_to_name(const std::set<ModulePlace>& places) {
  std::map<std::string, std::vector<std::string>> roots_by_name;
  for (const ModulePlace& place : places) roots_by_name[shown_name(place, {})].push_back(place.root);
  std::set<std::string> named;
  for (const auto& [name, roots] : roots_by_name)
    if (roots.size() > 1) named.insert(roots.begin(), roots.end());
  return named;
}

std::string shown_name(const ModulePlace& place, const std::set<std::string>& named) {
  if (place.path.empty()) return place.root;
  return place.root.empty() || !named.contains(place.root) ? place.path : place.root + "." + place.path;
}

}  // namespace tenon::scopes
