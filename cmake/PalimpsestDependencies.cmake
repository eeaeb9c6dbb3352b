# SPDX-License-Identifier: Apache-2.0
# All libraries that Palimpsest uses. None of them appears in a public header.

include(PalimpsestFind)
find_package(PkgConfig QUIET)
find_package(Threads REQUIRED)
set(palimpsest_missing "")
palimpsest_find_linked()
palimpsest_find(nlohmann_json::nlohmann_json NAME "JSON for Modern C++" PACKAGE nlohmann_json PKG_CONFIG nlohmann_json
  INSTALL "Debian nlohmann-json3-dev" "Fedora json-devel" "Arch nlohmann-json" "conda nlohmann_json"
    "Homebrew nlohmann-json")
palimpsest_find(CLI11::CLI11 NAME CLI11 PACKAGE CLI11 PKG_CONFIG CLI11
  INSTALL "Debian libcli11-dev" "Fedora cli11-devel" "Arch cli11" "conda cli11" "Homebrew cli11")
if(PALIMPSEST_STATIC_HDF5)
  # The prefix of a static HDF5, built by tools/wheel/libraries.sh.
  add_library(hdf5::hdf5 STATIC IMPORTED)
  set_target_properties(hdf5::hdf5 PROPERTIES
    IMPORTED_LOCATION ${PALIMPSEST_STATIC_HDF5}/lib/libhdf5.a
    INTERFACE_INCLUDE_DIRECTORIES ${PALIMPSEST_STATIC_HDF5}/include
    INTERFACE_LINK_LIBRARIES "ZLIB::ZLIB;m;${CMAKE_DL_LIBS}")
else()
  palimpsest_find(hdf5::hdf5 NAME HDF5 PACKAGE HDF5 COMPONENTS C TARGETS hdf5-shared PKG_CONFIG hdf5
    INSTALL "Debian libhdf5-dev" "Fedora hdf5-devel" "Arch hdf5" "conda hdf5" "Homebrew hdf5")
endif()
# OpenBLAS without threads, linked statically and hidden: its own threads would outlive their work
# and wait for ever without memory, and a shared library would share its state with the host
# program. Else any BLAS with CBLAS and LAPACK, such as -DOPENBLAS_LIBRARY="libcblas.so;liblapack.so".
find_library(OPENBLAS_LIBRARY NAMES libopenblas.a PATH_SUFFIXES openblas-serial NO_CACHE)
find_library(OPENBLAS_LIBRARY NAMES openblas flexiblas NO_CACHE)
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial openblas NO_CACHE)
if(NOT OPENBLAS_LIBRARY OR NOT OPENBLAS_INCLUDE_DIR)
  string(APPEND palimpsest_missing "\n  OpenBLAS: Debian libopenblas-serial-dev, Fedora openblas-static, "
    "Arch openblas, conda openblas, Homebrew openblas")
endif()
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h)
if(NOT RANDOM123_INCLUDE_DIR)
  string(APPEND palimpsest_missing "\n  Random123 (headers): Debian librandom123-dev, Fedora Random123-devel, "
    "conda random123, or its archive with -DRANDOM123_INCLUDE_DIR=FOLDER")
endif()
if(PALIMPSEST_BUILD_TESTS)
  palimpsest_find(GTest::gmock NAME GoogleTest PACKAGE GTest PKG_CONFIG gmock
    INSTALL "Debian libgtest-dev libgmock-dev" "Fedora gmock-devel" "Arch gtest" "conda gtest" "Homebrew googletest")
endif()
if(PALIMPSEST_BUILD_BENCHMARKS)
  palimpsest_find(benchmark::benchmark NAME "Google Benchmark" PACKAGE benchmark
    INSTALL "Debian libbenchmark-dev" "Fedora google-benchmark-devel" "Arch benchmark" "conda benchmark"
      "Homebrew google-benchmark")
endif()
if(palimpsest_missing)
  message(FATAL_ERROR "Libraries are missing. Install these, or on Debian run tools/install_dependencies.sh:"
    "${palimpsest_missing}")
endif()
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
list(TRANSFORM openblas_link_options REPLACE "--undefined=" "-u,")
target_link_options(palimpsest_openblas INTERFACE ${openblas_link_options})
add_library(palimpsest_random123 INTERFACE)
target_include_directories(palimpsest_random123 SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
# MPI for several processes. Optional: without it there are teams of one rank.
find_package(MPI COMPONENTS CXX QUIET)
if(PALIMPSEST_BUILD_TESTS)
  include(GoogleTest)
endif()
