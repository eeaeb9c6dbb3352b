# SPDX-License-Identifier: Apache-2.0
# Installed files, and the package files that find_package(palimpsest) reads, for the install tree
# and the build tree.
include(CMakePackageConfigHelpers)

set(palimpsest_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/palimpsest)

install(TARGETS palimpsest EXPORT palimpsest_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# A program that links a static library links what that stands on.
if(NOT BUILD_SHARED_LIBS)
  set(palimpsest_pc_requires "libhwy libxxhash fmt tbb libpng zlib pugixml")
  set(palimpsest_pc_libs " -lm -ldl -Wl,-rpath,\${libdir}")
endif()

get_property(palimpsest_modules GLOBAL PROPERTY palimpsest_modules)
install(TARGETS ${palimpsest_modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The command finds its library relative to itself, in any installation folder and in the build folder.
if(TARGET palimpsest_command)
  file(RELATIVE_PATH lib_from_bin
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(palimpsest_command PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin};$ORIGIN")
  install(TARGETS palimpsest_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Otherwise CMake appends an empty folder to the search path of what it installs later. The loader takes it
# for the current folder: libraries there would run in our programs.
foreach(target palimpsest palimpsest_command palimpsest_python ${palimpsest_modules})
  if(TARGET ${target})
    set_property(TARGET ${target} PROPERTY BUILD_WITH_INSTALL_RPATH ON)
  endif()
endforeach()

install(EXPORT palimpsest_targets FILE palimpsestTargets.cmake NAMESPACE palimpsest::
  DESTINATION ${palimpsest_package_dir})
export(EXPORT palimpsest_targets FILE ${PROJECT_BINARY_DIR}/palimpsestTargets.cmake
  NAMESPACE palimpsest::)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/palimpsestConfig.cmake.in
  ${PROJECT_BINARY_DIR}/palimpsestConfig.cmake
  INSTALL_DESTINATION ${palimpsest_package_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/palimpsestConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/palimpsestConfig.cmake
  ${PROJECT_BINARY_DIR}/palimpsestConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/PalimpsestFind.cmake
  DESTINATION ${palimpsest_package_dir})
configure_file(${PROJECT_SOURCE_DIR}/cmake/PalimpsestFind.cmake ${PROJECT_BINARY_DIR}/PalimpsestFind.cmake COPYONLY)
# For builds without CMake. The tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE palimpsest_lib_from_prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/palimpsest.pc.in ${PROJECT_BINARY_DIR}/palimpsest.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/palimpsest.pc DESTINATION share/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
