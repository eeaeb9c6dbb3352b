# SPDX-License-Identifier: Apache-2.0
# All libraries that Palimpsest uses. None of them appears in a public header.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(TBB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
if(PALIMPSEST_STATIC_HDF5)
  # The prefix of a static HDF5, built by tools/build_wheel.
  add_library(hdf5::hdf5 STATIC IMPORTED)
  set_target_properties(hdf5::hdf5 PROPERTIES
    IMPORTED_LOCATION ${PALIMPSEST_STATIC_HDF5}/lib/libhdf5.a
    INTERFACE_INCLUDE_DIRECTORIES ${PALIMPSEST_STATIC_HDF5}/include
    INTERFACE_LINK_LIBRARIES "ZLIB::ZLIB;m;${CMAKE_DL_LIBS}")
else()
  find_package(HDF5 REQUIRED COMPONENTS C)
endif()
find_package(pugixml REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(FFTW3 REQUIRED IMPORTED_TARGET fftw3)
pkg_check_modules(FFTW3F REQUIRED IMPORTED_TARGET fftw3f)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
# OpenBLAS without threads, linked statically and hidden: its own threads would outlive their work
# and wait for ever without memory, and a shared library would share its state with the host
# program.
find_library(OPENBLAS_LIBRARY NAMES libopenblas.a PATH_SUFFIXES openblas-serial NO_CACHE REQUIRED)
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial NO_CACHE REQUIRED)
add_library(palimpsest_openblas INTERFACE)
target_link_libraries(palimpsest_openblas INTERFACE ${OPENBLAS_LIBRARY} m)
# Without threads it also lacks locks, but several threads call it: kernels/arrays/blas_memory.cpp.
target_link_options(palimpsest_openblas INTERFACE LINKER:--wrap=blas_memory_alloc)
target_include_directories(palimpsest_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
add_library(palimpsest_random123 INTERFACE)
target_include_directories(palimpsest_random123 SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
# MPI for several processes. Optional: without it there are teams of one rank.
find_package(MPI COMPONENTS CXX QUIET)
if(PALIMPSEST_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(PALIMPSEST_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
