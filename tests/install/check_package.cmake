# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs the consumer against the package of TREE (Install or Build).
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(prefix ${BUILD_DIR})
if(TREE STREQUAL Install)
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/first)
  # An installed package may be moved.
  file(RENAME ${WORK_DIR}/first ${WORK_DIR}/moved)
  set(prefix ${WORK_DIR}/moved)
endif()
# The search path of a program has no empty folder: the loader takes it for the current one.
file(GLOB binaries ${prefix}/palimpsest* ${prefix}/*.so ${prefix}/bin/* ${prefix}/lib/*.so
  ${prefix}/palimpsest/*.so ${prefix}/palimpsest/*/* ${prefix}/python/palimpsest/*.so)
list(FILTER binaries INCLUDE REGEX "(/palimpsest|\\.so)$")
foreach(binary IN LISTS binaries)
  if(IS_DIRECTORY ${binary})
    continue()
  endif()
  execute_process(COMMAND readelf --dynamic ${binary} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
  if(dynamic MATCHES "(RPATH|RUNPATH)[^\n]*(\\[:|::|:\\]|\\[\\])[^\n]*")
    message(FATAL_ERROR "${binary}: got an empty folder in ${CMAKE_MATCH_0}")
  endif()
endforeach()
set(flags)
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer
  -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_FLAGS=${flags}
  -D CMAKE_PREFIX_PATH=${prefix} -D EXPECTED_VERSION=${VERSION}
  -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer)
if(TREE STREQUAL Install)
  # The same without CMake.
  set(ENV{PKG_CONFIG_PATH} ${prefix}/share/pkgconfig)
  execute_process(COMMAND pkg-config --cflags --libs palimpsest OUTPUT_VARIABLE pc_flags
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(pc_flags)
  run(${CXX_COMPILER} ${flags} ${CONSUMER_DIR}/main.cpp ${pc_flags}
    -Wl,-rpath,${prefix}/lib -o ${WORK_DIR}/by_pkg_config)
  run(${WORK_DIR}/by_pkg_config)
endif()
if(TREE STREQUAL Install AND EXISTS ${prefix}/lib/libpalimpsest.a)
  # The names of OpenBLAS are local.
  execute_process(COMMAND nm --extern-only --defined-only ${prefix}/lib/libpalimpsest.a OUTPUT_VARIABLE names
    COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH " [TDB] [^_\n][^\n]*" foreign "${names}")
  if(foreign)
    message(FATAL_ERROR "libpalimpsest.a: got the global name${foreign}, expected only those of C++")
  endif()
endif()
if(TREE STREQUAL Install AND EXISTS ${prefix}/bin/palimpsest)
  run(${prefix}/bin/palimpsest --version)
  # Without its HDF5 module the library names the missing file.
  run(${prefix}/bin/palimpsest simulate ${WORK_DIR}/scan.h5 --size 32 --center 12)
  file(REMOVE ${prefix}/lib/libpalimpsest_hdf5.so)
  execute_process(COMMAND ${prefix}/bin/palimpsest info ${WORK_DIR}/scan.h5
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE text)
  if(code EQUAL 0 OR NOT text MATCHES "cannot be read: the HDF5 module cannot be loaded")
    message(FATAL_ERROR "info without the module: got ${code} and '${text}'")
  endif()
endif()
file(REMOVE_RECURSE ${WORK_DIR})
