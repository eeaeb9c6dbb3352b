# SPDX-License-Identifier: Apache-2.0
# Finds libraries under any of the names that distributions give them. Read by the build and by the package
# file of a static library.

# palimpsest_find(TARGET NAME name PACKAGE package [TARGETS target...] [PKG_CONFIG module] INSTALL names)
# Makes TARGET from the package file PACKAGE, whose target may have one of the names of TARGETS, or from the
# pkg-config file MODULE. INSTALL: the names of the package in Debian, Fedora, Arch, conda and Homebrew. What is missing is
# collected in palimpsest_missing, so that one message can name all of it.
function(palimpsest_find target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;PACKAGE;PKG_CONFIG" "COMPONENTS;TARGETS;INSTALL")
  if(TARGET ${target})
    return()
  endif()
  if(arg_COMPONENTS)
    list(PREPEND arg_COMPONENTS COMPONENTS)
  endif()
  find_package(${arg_PACKAGE} QUIET ${arg_COMPONENTS})
  set(found ${target})
  foreach(other ${arg_TARGETS})
    if(NOT TARGET ${found} AND TARGET ${other})
      set(found ${other})
    endif()
  endforeach()
  if(NOT TARGET ${found} AND arg_PKG_CONFIG)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
      pkg_check_modules(${arg_PACKAGE}_PC QUIET IMPORTED_TARGET ${arg_PKG_CONFIG})
      set(found PkgConfig::${arg_PACKAGE}_PC)
    endif()
  endif()
  if(NOT TARGET ${found})
    list(JOIN arg_INSTALL ", " names)
    string(APPEND palimpsest_missing "\n  ${arg_NAME}: ${names}")
    set(palimpsest_missing "${palimpsest_missing}" PARENT_SCOPE)
  elseif(NOT found STREQUAL target)
    add_library(${target} INTERFACE IMPORTED)
    target_link_libraries(${target} INTERFACE ${found})
  endif()
endfunction()

# The libraries that programs link besides a static libpalimpsest.
macro(palimpsest_find_linked)
  palimpsest_find(fmt::fmt NAME fmt PACKAGE fmt PKG_CONFIG fmt
    INSTALL "Debian libfmt-dev" "Fedora fmt-devel" "Arch fmt" "conda fmt" "Homebrew fmt")
  palimpsest_find(TBB::tbb NAME oneTBB PACKAGE TBB PKG_CONFIG tbb
    INSTALL "Debian libtbb-dev" "Fedora tbb-devel" "Arch onetbb" "conda tbb-devel" "Homebrew tbb")
  palimpsest_find(hwy::hwy NAME Highway PACKAGE hwy TARGETS hwy PKG_CONFIG libhwy
    INSTALL "Debian libhwy-dev" "Fedora highway-devel" "Arch highway" "conda libhwy" "Homebrew highway")
  palimpsest_find(xxHash::xxhash NAME xxHash PACKAGE xxHash PKG_CONFIG libxxhash
    INSTALL "Debian libxxhash-dev" "Fedora xxhash-devel" "Arch xxhash" "conda xxhash" "Homebrew xxhash")
  palimpsest_find(PNG::PNG NAME libpng PACKAGE PNG PKG_CONFIG libpng
    INSTALL "Debian libpng-dev" "Fedora libpng-devel" "Arch libpng" "conda libpng" "Homebrew libpng")
  palimpsest_find(ZLIB::ZLIB NAME zlib PACKAGE ZLIB PKG_CONFIG zlib
    INSTALL "Debian zlib1g-dev" "Fedora zlib-devel" "Arch zlib" "conda zlib" "Homebrew zlib")
  palimpsest_find(pugixml::pugixml NAME pugixml PACKAGE pugixml TARGETS pugixml PKG_CONFIG pugixml
    INSTALL "Debian libpugixml-dev" "Fedora pugixml-devel" "Arch pugixml" "conda pugixml" "Homebrew pugixml")
endmacro()
