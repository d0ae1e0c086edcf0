# Install rules: library, plugins, program, headers, the CMake package, pkg-config. Nothing installed names a build path.
include(CMakePackageConfigHelpers)
set(TENON_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

install(TARGETS tenon tenon_plugin tenon_compat EXPORT TenonTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILE_SET parts DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/compat/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/compat
  COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "pytorch" EXCLUDE)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${TENON_CMAKE_DIR} COMPONENT development)

# The program finds the library, and the library its plugins, from where they lie: the whole tree can be moved.
file(RELATIVE_PATH lib_from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon_program)
  set_target_properties(tenon_program PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
  install(TARGETS tenon_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
get_property(plugins GLOBAL PROPERTY TENON_PLUGIN_TARGETS)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/plugins)
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
  INSTALL_DESTINATION ${TENON_CMAKE_DIR})
# While the version is 0.x a minor release may break; a plugin has a second, finer check in its descriptor.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/cmake/TenonPlugin.cmake
  DESTINATION ${TENON_CMAKE_DIR} COMPONENT development)

# The build folder is a package too: -DTenon_DIR=BUILD, for an author who has a checkout and has installed nothing.
export(EXPORT TenonTargets NAMESPACE Tenon:: FILE ${PROJECT_BINARY_DIR}/TenonTargets.cmake)
configure_file(${PROJECT_SOURCE_DIR}/cmake/TenonPlugin.cmake ${PROJECT_BINARY_DIR}/TenonPlugin.cmake COPYONLY)

file(RELATIVE_PATH TENON_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${PROJECT_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
