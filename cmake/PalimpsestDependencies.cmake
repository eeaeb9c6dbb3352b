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
# program. Else any BLAS with CBLAS and LAPACK, such as -DOPENBLAS_LIBRARY="libcblas.so;liblapack.so".
find_library(OPENBLAS_LIBRARY NAMES libopenblas.a PATH_SUFFIXES openblas-serial NO_CACHE)
find_library(OPENBLAS_LIBRARY NAMES openblas NO_CACHE REQUIRED)
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial openblas NO_CACHE REQUIRED)
add_library(palimpsest_openblas INTERFACE)
target_link_libraries(palimpsest_openblas INTERFACE ${OPENBLAS_LIBRARY} m)
target_include_directories(palimpsest_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
# What it lacks is in kernels/matrices/openblas.cpp: locks, and a choice of kernels.
set(palimpsest_openblas_links --wrap=blas_memory_alloc --wrap=getenv)
set(palimpsest_has_openblas 0)
if(OPENBLAS_LIBRARY MATCHES "libopenblas[^/;]*\\.a$")
  set(palimpsest_has_openblas 1)
  list(APPEND palimpsest_openblas_links --undefined=openblas_get_config)
elseif(NOT BUILD_SHARED_LIBS)
  message(FATAL_ERROR "OPENBLAS_LIBRARY: got ${OPENBLAS_LIBRARY}, expected libopenblas.a, which a "
    "static library hides in itself. Try -DBUILD_SHARED_LIBS=ON")
endif()
list(TRANSFORM palimpsest_openblas_links PREPEND LINKER: OUTPUT_VARIABLE openblas_link_options)
target_link_options(palimpsest_openblas INTERFACE ${openblas_link_options})
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
