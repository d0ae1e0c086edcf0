# What Tenon ships with, told to the library: the names of the plugins that this build makes, and every backend and
# communicator that has a folder, with what `tenon doctor` says where it is missing.

# tenon_ship_backend(KIND [TO_BUILD text] [TO_RUN text]): called by the folder of a backend, whether it is built or not.
# TO_BUILD: what to do where its plugin could not be built. TO_RUN: what its devices need; a backend without this line is
# expected to have a device on every machine.
function(tenon_ship_backend kind)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TO_BUILD;TO_RUN" "")
  set_property(GLOBAL APPEND_STRING PROPERTY TENON_SHIPPED_BACKENDS
    "    {\"${kind}\", R\"(${arg_TO_BUILD})\", R\"(${arg_TO_RUN})\"},\n")
endfunction()

# tenon_ship_communicator(NAME [TO_BUILD text] [TO_RUN text]): the same of a communicator.
function(tenon_ship_communicator name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TO_BUILD;TO_RUN" "")
  set_property(GLOBAL APPEND_STRING PROPERTY TENON_SHIPPED_COMMUNICATORS
    "    {\"${name}\", R\"(${arg_TO_BUILD})\", R\"(${arg_TO_RUN})\"},\n")
endfunction()

# After the last plugin: writes shipped_plugins.inc, which runtime/plugins/shipped_plugins.cpp includes.
function(tenon_write_shipped_plugins)
  get_property(backends GLOBAL PROPERTY TENON_SHIPPED_BACKENDS)
  get_property(communicators GLOBAL PROPERTY TENON_SHIPPED_COMMUNICATORS)
  get_property(targets GLOBAL PROPERTY TENON_PLUGIN_TARGETS)
  set(names "")
  foreach(target IN LISTS targets)
    string(REPLACE "tenon_plugin_" "" name ${target})
    string(APPEND names "    \"${name}\",\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/framework/shipped_plugins.inc @ONLY CONTENT
"// Written by cmake/TenonShipped.cmake. Each ends with an entry that is none: no array of C++ is empty.
constexpr std::string_view kPlugins[] = {
@names@    {}};
constexpr ShippedBackend kBackends[] = {
@backends@    {}};
constexpr ShippedCommunicator kCommunicators[] = {
@communicators@    {}};
")
endfunction()
