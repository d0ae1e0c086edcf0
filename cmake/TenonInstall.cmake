# Install rules: library, plugins, program, headers, the CMake package, pkg-config.
install(TARGETS tenon EXPORT TenonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
