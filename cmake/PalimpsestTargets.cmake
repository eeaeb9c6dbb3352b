# SPDX-License-Identifier: Apache-2.0
# How a layer, a test program and the library are built.
include(CheckLinkerFlag)

find_program(PALIMPSEST_CCACHE ccache)
if(PALIMPSEST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Settings that ccache needs to cache objects with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${PALIMPSEST_CCACHE})
endif()

# External headers that most files include, parsed once for the library, in the layer `base`, and
# once for the tests. Every file still includes the headers that it uses: the lint preset builds
# without them.
set(palimpsest_common_headers
  <algorithm> <array> <complex> <cstdint> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <vector> <fmt/format.h>)

# Generated headers.
set(palimpsest_generated ${PROJECT_BINARY_DIR}/include)

add_library(palimpsest_options INTERFACE)
target_include_directories(palimpsest_options INTERFACE ${palimpsest_generated})
# All layers use fmt, and precompiled headers are shared by targets with the same macros, including those of fmt.
target_include_directories(palimpsest_options SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(palimpsest_options INTERFACE
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
# Warnings take a twentieth of the time of a build.
if(PALIMPSEST_WERROR)
  target_compile_options(palimpsest_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
    -Woverloaded-virtual)
else()
  target_compile_options(palimpsest_options INTERFACE -w)
endif()
target_compile_options(palimpsest_options INTERFACE -ffp-contract=off)
# GCC 12 reports false overlaps and overruns in concatenations of std::string (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(palimpsest_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(PALIMPSEST_UNITY)
  # Warnings about names of one file in another one.
  target_compile_options(palimpsest_options INTERFACE -Wno-shadow -Wno-subobject-linkage)
  # Units are large: collecting garbage only above 1 GB, which no unit reaches, saves a tenth of
  # their time.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(palimpsest_options INTERFACE --param=ggc-min-heapsize=1000000)
  endif()
endif()
if(PALIMPSEST_WERROR)
  target_compile_options(palimpsest_options INTERFACE -Werror)
endif()
if(PALIMPSEST_SANITIZE)
  # GCC warns of moved-from optionals in instrumented code without cause.
  target_compile_options(palimpsest_options INTERFACE
    -Wno-maybe-uninitialized -fsanitize=${PALIMPSEST_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(palimpsest_options INTERFACE -fsanitize=${PALIMPSEST_SANITIZE})
endif()

# Returns the names that a source defines for itself: in unnamed namespaces and as macros that
# last. Functions are a list of their own, and so are other names of types, as `name=type`.
function(palimpsest_own_names source functions others aliases)
  file(STRINGS ${source} lines REGEX "^([A-Za-z_]|\\[\\[[a-z]+\\]\\] [A-Za-z]|}  // namespace$|#(define|undef) )")
  set(own_functions)
  set(own_others)
  set(own_aliases)
  set(is_own FALSE)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^(\\[\\[[a-z]+\\]\\]|__extension__) " "" line "${line}")
    string(REGEX REPLACE " alignas\\([^)]*\\)" "" line "${line}")
    if(line STREQUAL "namespace {")
      set(is_own TRUE)
    elseif(line STREQUAL "}  // namespace")
      set(is_own FALSE)
    elseif(line MATCHES "^#define ([A-Za-z0-9_]+)")
      list(APPEND own_others ${CMAKE_MATCH_1})
    elseif(line MATCHES "^#undef ([A-Za-z0-9_]+)")
      list(REMOVE_ITEM own_others ${CMAKE_MATCH_1})
    elseif(is_own AND line MATCHES "^(class|struct|union|enum class|enum) ([A-Za-z0-9_]*[a-z][A-Za-z0-9_]*)")
      list(APPEND own_others ${CMAKE_MATCH_2})
    elseif(is_own AND line MATCHES "^using ([A-Za-z0-9_]+) = ([^;]*)")
      list(APPEND own_aliases "${CMAKE_MATCH_1}=${CMAKE_MATCH_2}")
    elseif(is_own AND line MATCHES "^(constexpr|const) [^(]* = .*, k")  # several constants
      string(REGEX MATCHALL "k[A-Za-z0-9]+ = " names "${line}")
      list(TRANSFORM names REPLACE " = " "")
      list(APPEND own_others ${names})
    # Macro calls consist of capital letters only.
    elseif(is_own AND NOT line MATCHES "^(using|static_assert)"
        AND line MATCHES "(^|[ *&])([A-Za-z0-9_]*[a-z][A-Za-z0-9_]*)(\\(|{|;| =|\\[)")
      if(CMAKE_MATCH_3 STREQUAL "(")
        list(APPEND own_functions ${CMAKE_MATCH_2})
      else()
        list(APPEND own_others ${CMAKE_MATCH_2})
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES own_functions)
  list(REMOVE_DUPLICATES own_others)
  set(${functions} "${own_functions}" PARENT_SCOPE)
  set(${others} "${own_others}" PARENT_SCOPE)
  set(${aliases} "${own_aliases}" PARENT_SCOPE)
endfunction()

# Returns the names that a source uses, except those behind a dot, an arrow or `::`, as `;a;b;`, and
# those of them that it calls.
function(palimpsest_used_names source used called)
  file(READ ${source} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\"([^\"\\]|\\\\.)*\"" "" text "${text}")
  string(REGEX REPLACE "(\\.|->|::)[A-Za-z_][A-Za-z0-9_]*" "" text "${text}")
  string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*" names "${text}")
  list(REMOVE_DUPLICATES names)
  set(${used} ";${names};" PARENT_SCOPE)
  string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*[(<]" names "${text}")
  list(TRANSFORM names REPLACE "[(<]" "")
  list(REMOVE_DUPLICATES names)
  set(${called} ";${names};" PARENT_SCOPE)
endfunction()

# Is one of these names in a text `;a;b;`?
function(palimpsest_uses_any text names result)
  foreach(name IN LISTS names)
    string(FIND "${text}" ";${name};" position)
    if(position GREATER -1)
      set(${result} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

# Is one of these names of types, `name=type`, in a text `;a;b;` of a source that has others?
function(palimpsest_uses_any_alias text aliases own_aliases result)
  list(REMOVE_ITEM aliases ${own_aliases})
  list(TRANSFORM aliases REPLACE "=.*" "")
  palimpsest_uses_any("${text}" "${aliases}" is_used)
  set(${result} ${is_used} PARENT_SCOPE)
endfunction()

# Returns the names of the types in the headers of the library and the tests that a file includes,
# directly or indirectly.
function(palimpsest_included_types file result)
  set(types)
  file(STRINGS ${file} lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" name "${line}")
    set(header ${PROJECT_SOURCE_DIR}/src/${name})
    if(NOT EXISTS ${header})
      set(header ${PROJECT_SOURCE_DIR}/tests/${name})
    endif()
    if(NOT EXISTS ${header})  # made by the build, or behind a condition
      continue()
    endif()
    get_property(is_known GLOBAL PROPERTY palimpsest_types_${header} SET)
    if(NOT is_known)
      set_property(GLOBAL PROPERTY palimpsest_types_${header} "")  # ends circles
      palimpsest_included_types(${header} below)
      file(STRINGS ${header} definitions REGEX "^(class|struct|enum class|concept|using) [A-Za-z0-9_]+")
      foreach(definition IN LISTS definitions)
        string(REGEX REPLACE "^(class|struct|enum class|concept|using) ([A-Za-z0-9_]+).*" "\\2" name
          "${definition}")
        list(APPEND below ${name})
      endforeach()
      list(REMOVE_DUPLICATES below)
      set_property(GLOBAL PROPERTY palimpsest_types_${header} "${below}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    endif()
    get_property(below GLOBAL PROPERTY palimpsest_types_${header})
    list(APPEND types ${below})
  endforeach()
  list(REMOVE_DUPLICATES types)
  set(${result} "${types}" PARENT_SCOPE)
endfunction()

set(PALIMPSEST_UNITY_BYTES 520000)

# Compiles the sources of a target in units of several, so that headers are parsed and templates
# instantiated once per unit. Two sources go to different units if one calls a function that the
# other defines for itself or uses another such name, or if one defines a type with the name of a
# type in a header of the other: so no name changes its meaning. Sources of other folders, of
# several targets, those that are compiled once per instruction set and the one with the streams of
# Random123, which tools/check_statics.py knows, stay alone.
function(palimpsest_unity target)
  if(NOT PALIMPSEST_UNITY)
    return()
  endif()
  get_target_property(names ${target} SOURCES)
  set(sources)
  foreach(source ${names})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR ${source} is_here)
    get_source_file_property(is_shared ${source} UNITY_GROUP)
    set(is_special)
    if(is_here)
      file(STRINGS ${source} is_special REGEX "^#(define HWY_TARGET_INCLUDE|include <Random123/)")
    endif()
    if(is_shared OR NOT is_here OR is_special)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  # Units of about one size, so that none is still compiled when all others are ready.
  set(total 0)
  foreach(source ${sources})
    file(SIZE ${source} bytes)
    math(EXPR total "${total} + ${bytes}")
  endforeach()
  math(EXPR units "(${total} - 1) / ${PALIMPSEST_UNITY_BYTES} + 1")
  math(EXPR most "${total} / ${units} * 11 / 10")
  set(count 0)
  foreach(source ${sources})
    palimpsest_own_names(${source} functions others aliases)
    file(STRINGS ${source} more_types REGEX "^using [A-Za-z0-9_]+ =")
    list(TRANSFORM more_types REPLACE "^using ([A-Za-z0-9_]+) =.*" "\\1")
    set(types ${others} ${more_types})  # perhaps
    palimpsest_used_names(${source} used called)
    palimpsest_included_types(${source} included)
    file(SIZE ${source} bytes)
    set(unit 0)
    while(unit LESS count)
      math(EXPR sum "${bytes_${unit}} + ${bytes}")
      if(sum LESS most)
        palimpsest_uses_any("${used_${unit}}" "${others}" is_used)
        palimpsest_uses_any("${used}" "${others_${unit}}" uses)
        palimpsest_uses_any_alias("${used_${unit}}" "${aliases}" "${aliases_${unit}}" renames)
        palimpsest_uses_any_alias("${used}" "${aliases_${unit}}" "${aliases}" is_renamed)
        palimpsest_uses_any("${called_${unit}}" "${functions}" is_called)
        palimpsest_uses_any("${called}" "${functions_${unit}}" calls)
        palimpsest_uses_any("${included_${unit}}" "${types}" hides)
        palimpsest_uses_any(";${included};" "${types_${unit}}" is_hidden)
        if(NOT (is_used OR uses OR renames OR is_renamed OR is_called OR calls OR hides OR is_hidden))
          break()
        endif()
      endif()
      math(EXPR unit "${unit} + 1")
    endwhile()
    if(unit EQUAL count)
      math(EXPR count "${count} + 1")
      set(bytes_${unit} 0)
      set(functions_${unit})
      set(others_${unit})
      set(aliases_${unit})
      set(used_${unit})
      set(called_${unit})
      set(types_${unit})
      set(included_${unit} ";")
    endif()
    math(EXPR bytes_${unit} "${bytes_${unit}} + ${bytes}")
    list(APPEND functions_${unit} ${functions})
    list(APPEND others_${unit} ${others})
    list(APPEND aliases_${unit} ${aliases})
    string(APPEND used_${unit} "${used}")
    string(APPEND called_${unit} "${called}")
    list(APPEND types_${unit} ${types})
    string(APPEND included_${unit} "${included};")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Visibility of what no header marks. To GCC a function is visible if a header declares it in a visible namespace, to Clang
# only if the namespace around its definition is visible: there all is exported that cmake/palimpsest.map names, and protected:
# calls within the library do not go through the loader.
set(palimpsest_visibility hidden)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(palimpsest_visibility protected)
endif()

# palimpsest_layer(NAME [LEVEL <level>] [USES <layers>] [LIBRARIES <targets>])
#
# One folder of src/palimpsest. A header is internal if one of its first lines starts with `//
# Internal`; all others are installed and each must compile alone. LIBRARIES are linked privately:
# no third-party type is public. LEVEL: optimization level in a release build, for code outside of
# loops over elements, which gains nothing from 3.
function(palimpsest_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 L "" "LEVEL" "USES;LIBRARIES")
  set(target palimpsest_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_module\\.cpp$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${name}/*.hpp)
  set(public)
  foreach(header ${headers})
    file(STRINGS ${header} first_lines LIMIT_COUNT 3)
    if(NOT first_lines MATCHES "// Internal")
      list(APPEND public ${header})
    endif()
  endforeach()
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX CXX_VISIBILITY_PRESET ${palimpsest_visibility})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${public})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  if(name STREQUAL base)
    # GCC compiles functions for other instruction sets at the level of the precompiled headers.
    if(L_LEVEL)
      message(FATAL_ERROR "layer base: got LEVEL ${L_LEVEL}, expected none: loops of copy and kernels have its level")
    endif()
    target_precompile_headers(${target} PRIVATE ${palimpsest_common_headers})
  else()
    target_precompile_headers(${target} REUSE_FROM palimpsest_base)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:palimpsest_options> ${L_LIBRARIES})
  palimpsest_unity(${target})
  if(L_LEVEL)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${L_LEVEL}>)
  endif()
  set(closure ${name})
  foreach(use ${L_USES})
    get_property(below GLOBAL PROPERTY palimpsest_closure_${use})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY palimpsest_closure_${name} "${closure}")
  set_property(GLOBAL PROPERTY palimpsest_libraries_${name} "${L_LIBRARIES}")
  set_property(GLOBAL APPEND PROPERTY palimpsest_layers ${name})
  set_property(GLOBAL APPEND PROPERTY palimpsest_public_headers ${public})
endfunction()

# palimpsest_module(NAME SOURCES <files> LIBRARIES <targets>): a shared object beside the library,
# which loads it on demand.
function(palimpsest_module name)
  cmake_parse_arguments(PARSE_ARGV 1 M "" "" "SOURCES;LIBRARIES")
  set(target palimpsest_${name})
  add_library(${target} MODULE ${M_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE palimpsest_options ${M_LIBRARIES})
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  set_property(GLOBAL APPEND PROPERTY palimpsest_modules ${target})
endfunction()

# Writes palimpsest/palimpsest.hpp, which includes every public header, into the build tree.
function(palimpsest_umbrella_header path)
  get_property(headers GLOBAL PROPERTY palimpsest_public_headers)
  set(text "// SPDX-License-Identifier: Apache-2.0\n// Every public header. Made by the build.\n")
  string(APPEND text "#pragma once\n\n")
  foreach(header ${headers})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${header})
    string(APPEND text "#include \"${name}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
endfunction()

# Returns the names of functions that sources define at the start of a line as PATTERN, whose only
# group is the name. CMake runs again when one of the sources changes.
function(palimpsest_defined_names result pattern)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(names)
  foreach(source ${ARGN})
    file(STRINGS ${source} definitions REGEX "^${pattern}")
    foreach(definition IN LISTS definitions)
      string(REGEX REPLACE "^${pattern}.*" "\\1" name "${definition}")
      list(APPEND names ${name})
    endforeach()
  endforeach()
  list(SORT names)
  set(${result} "${names}" PARENT_SCOPE)
endfunction()

# palimpsest_list_header(HEADER LAYER PATTERN TYPE TEXT): writes a header into the build tree for
# all functions without arguments that the sources of a layer define as PATTERN, whose only group is
# the name. In TEXT, `@declarations@` is replaced by their declarations, which begin with TYPE, and
# `@list@` by their names, separated by commas.
function(palimpsest_list_header header layer pattern type text)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${layer}/*.cpp)
  palimpsest_defined_names(names "${pattern}\\(\\)" ${sources})
  set(declarations "")
  foreach(name IN LISTS names)
    string(APPEND declarations "${type}${name}();\n")
  endforeach()
  list(JOIN names ", " list)
  file(CONFIGURE OUTPUT ${palimpsest_generated}/palimpsest/${header} @ONLY CONTENT
    "// SPDX-License-Identifier: Apache-2.0\n${text}")
endfunction()

# All `void register_ops_of_<name>()` in the sources of the ops.
function(palimpsest_registered_ops)
  palimpsest_list_header(ops/registered_ops.hpp ops "void (register_ops_of_[a-z_0-9]+)" "void "
"// Internal: functions that register the ops of this library. Made by the build from the definitions.
#pragma once

namespace palimpsest::ops {

@declarations@
inline constexpr void (*kRegisteredOps[])() = {@list@};

}  // namespace palimpsest::ops
")
endfunction()

# All `const LinopType& linop_types::<name>()` in the sources of the operators.
function(palimpsest_linop_types)
  palimpsest_list_header(linop/core/builtin_types.hpp linop "const LinopType& linop_types::([a-z_0-9]+)"
    "const LinopType& "
"// Internal: the types of the operators of this library, as functions, so that each is made at first
// use. Made by the build from the definitions.
#pragma once

#include \"palimpsest/linop/core/linop_type.hpp\"

namespace palimpsest::linop_types {

@declarations@
inline constexpr const LinopType& (*kBuiltIn[])() = {@list@};

}  // namespace palimpsest::linop_types
")
endfunction()

# All `const ImageFormat& image_format_types::<name>()` in the sources of the file formats.
function(palimpsest_image_formats)
  palimpsest_list_header(io/image_format_list.hpp io "const ImageFormat& image_format_types::([a-z_0-9]+)"
    "const ImageFormat& "
"// Internal: the formats of images of this library. Made by the build from the definitions.
#pragma once

#include <vector>

#include \"palimpsest/io/format.hpp\"

namespace palimpsest::image_format_types {

@declarations@
inline std::vector<const ImageFormat& (*)()> list() { return {@list@}; }

}  // namespace palimpsest::image_format_types
")
endfunction()

# palimpsest_sample_lists(HEADER PREFIX INCLUDE NAMESPACE TYPE <sources>): writes a header into the build tree with
# PREFIX_sample_lists(), pairs of a name in CamelCase and a function, of all `std::vector<TYPE> <name>_samples()` that
# the sources define, and PREFIX_refusal_lists() of all `std::vector<testing::Refusal> <name>_refusals()`.
function(palimpsest_sample_lists header prefix include namespace type)
  palimpsest_defined_names(samples "std::vector<${type}> ([a-z_0-9]+)_samples\\(\\)" ${ARGN})
  palimpsest_defined_names(refusals "std::vector<testing::Refusal> ([a-z_0-9]+)_refusals\\(\\)" ${ARGN})
  list(REMOVE_ITEM samples ${prefix})
  list(REMOVE_ITEM refusals ${prefix})
  set(declarations "")
  set(entries "")
  foreach(name IN LISTS samples)
    string(APPEND declarations "std::vector<${type}> ${name}_samples();\n")
    string(REPLACE "_" ";" words ${name})
    set(title)
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND title ${first}${rest})
    endforeach()
    string(APPEND entries "\n      {\"${title}\", ${name}_samples},")
  endforeach()
  set(list "")
  foreach(name IN LISTS refusals)
    string(APPEND declarations "std::vector<testing::Refusal> ${name}_refusals();\n")
    string(APPEND list "\n      ${name}_refusals,")
  endforeach()
  file(CONFIGURE OUTPUT ${palimpsest_generated}/${header} @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
// Samples and refusals. Made by the build from the definitions.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include \"${include}\"

namespace ${namespace} {

@declarations@
inline std::vector<std::pair<std::string_view, std::vector<${type}> (*)()>> ${prefix}_sample_lists() {
  return {@entries@};
}
inline std::vector<std::vector<testing::Refusal> (*)()> ${prefix}_refusal_lists() {
  return {@list@};
}

}  // namespace ${namespace}
")
endfunction()

# Links the objects of the named layers, and of the layers that they use, into a program of this
# build.
function(palimpsest_link_layers target)
  set(closure)
  foreach(layer ${ARGN})
    get_property(below GLOBAL PROPERTY palimpsest_closure_${layer})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  foreach(layer ${closure})
    get_property(libraries GLOBAL PROPERTY palimpsest_libraries_${layer})
    target_link_libraries(${target} PRIVATE palimpsest_${layer} ${libraries})
  endforeach()
  target_link_libraries(${target} PRIVATE palimpsest_options)
  get_property(modules GLOBAL PROPERTY palimpsest_modules)
  add_dependencies(${target} ${modules})
endfunction()

# Gives one object of a layer and what it needs of OpenBLAS, whose names are local there: a program may have another
# BLAS, and need not have this one.
function(palimpsest_hide_openblas result layer)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/palimpsest_${layer}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_LINKER} -r ${palimpsest_openblas_links} -o ${object} $<TARGET_OBJECTS:palimpsest_${layer}>
      ${OPENBLAS_LIBRARY}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=_Z* --keep-global-symbol=DW.ref.* ${object}
    DEPENDS $<TARGET_OBJECTS:palimpsest_${layer}> COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${result} ${object} PARENT_SCOPE)
endfunction()

# The library for users: all layers.
function(palimpsest_library)
  if(BUILD_SHARED_LIBS)
    add_library(palimpsest SHARED)
  else()
    add_library(palimpsest STATIC)
  endif()
  add_library(palimpsest::palimpsest ALIAS palimpsest)
  get_property(layers GLOBAL PROPERTY palimpsest_layers)
  foreach(layer ${layers})
    get_property(libraries GLOBAL PROPERTY palimpsest_libraries_${layer})
    set(objects $<TARGET_OBJECTS:palimpsest_${layer}>)
    if(NOT BUILD_SHARED_LIBS)
      # Programs link what the objects need, not what has headers only.
      list(REMOVE_ITEM libraries nlohmann_json::nlohmann_json palimpsest_random123)
      if(palimpsest_openblas IN_LIST libraries)
        list(REMOVE_ITEM libraries palimpsest_openblas)
        palimpsest_hide_openblas(objects ${layer})
      endif()
    endif()
    target_sources(palimpsest PRIVATE ${objects})
    target_link_libraries(palimpsest PRIVATE ${libraries})
    get_target_property(headers palimpsest_${layer} HEADER_SET)
    if(headers)
      target_sources(palimpsest PUBLIC FILE_SET HEADERS
        BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
    endif()
  endforeach()
  palimpsest_umbrella_header(${palimpsest_generated}/palimpsest/palimpsest.hpp)
  target_sources(palimpsest PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${palimpsest_generated}
    FILES ${palimpsest_generated}/palimpsest/palimpsest.hpp
      ${PROJECT_SOURCE_DIR}/src/palimpsest/testing.hpp)
  target_compile_features(palimpsest PUBLIC cxx_std_20)
  get_property(modules GLOBAL PROPERTY palimpsest_modules)
  add_dependencies(palimpsest ${modules})
  set_target_properties(palimpsest PROPERTIES LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  if(BUILD_SHARED_LIBS)
    palimpsest_shared_options()
  endif()
endfunction()

function(palimpsest_shared_options)
  target_link_libraries(palimpsest PRIVATE $<BUILD_INTERFACE:palimpsest_options>)
  # Undefined symbols are errors here, not at the user's link. (Sanitizers leave theirs to the
  # program.)
  if(NOT PALIMPSEST_SANITIZE)
    target_link_options(palimpsest PRIVATE LINKER:--no-undefined)
  endif()
  # Symbols of statically linked libraries stay hidden. The library stays loaded after dlclose(),
  # since threads and exit handlers may still call it. It calls its own functions directly: a third of
  # the symbols is left to the loader. (Some linkers lack two of the options: there other symbols of OpenBLAS stay
  # hidden by the list of names, and calls go through the loader.)
  foreach(option --exclude-libs,libopenblas.a -Bsymbolic-functions)
    string(MAKE_C_IDENTIFIER "palimpsest_linker_has${option}" has)
    check_linker_flag(CXX LINKER:${option} ${has})
    if(${has})
      target_link_options(palimpsest PRIVATE LINKER:${option})
    endif()
  endforeach()
  target_link_options(palimpsest PRIVATE LINKER:-z,nodelete LINKER:--as-needed
    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/palimpsest.map)
  # Modules are beside the library, in any installation folder.
  set_target_properties(palimpsest PROPERTIES
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/palimpsest.map INSTALL_RPATH $ORIGIN
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()

# palimpsest_command(SOURCES <files> LIBRARIES <targets>): the program `palimpsest`, which uses the
# library like any user.
function(palimpsest_command)
  cmake_parse_arguments(PARSE_ARGV 0 C "" "" "SOURCES;LIBRARIES")
  add_executable(palimpsest_command ${C_SOURCES})
  set_target_properties(palimpsest_command PROPERTIES
    OUTPUT_NAME palimpsest RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(palimpsest_command
    PRIVATE palimpsest palimpsest_options ${C_LIBRARIES})
endfunction()

# Options of the sources of tests. Without optimization they compile in two thirds of the time. Tests
# that compare with loops of their own are optimized, and cannot have the precompiled headers.
function(palimpsest_test_options target is_optimized)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_features(${target} PRIVATE cxx_std_20)
  palimpsest_unity(${target})
  if(is_optimized)
    return()
  endif()
  if(NOT PALIMPSEST_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
  endif()
  if(target STREQUAL palimpsest_test_headers)
    target_precompile_headers(${target}
      PRIVATE ${palimpsest_common_headers} <gmock/gmock.h> <gtest/gtest.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM palimpsest_test_headers)
  endif()
endfunction()

# palimpsest_test_objects(NAME [OPTIMIZED] <sources>): objects that several test programs share.
function(palimpsest_test_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 O "OPTIMIZED" "" "")
  add_library(${name} OBJECT ${O_UNPARSED_ARGUMENTS})
  # Compiled like programs.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_link_libraries(${name} PRIVATE palimpsest_options GTest::gtest GTest::gmock)
  palimpsest_test_options(${name} ${O_OPTIMIZED})
endfunction()

# palimpsest_test(NAME LAYERS <layers> SOURCES <files> [LIBRARIES <targets>] [OPTIMIZED] [TOGETHER <suite>] [LOCK <name>]):
# one program, its cases found by ctest. The hundreds of cases of the suite TOGETHER run in 8 processes, in
# half the time that a process for each would take.
# Programs with one LOCK run one after the other.
function(palimpsest_test name)
  cmake_parse_arguments(PARSE_ARGV 1 T "OPTIMIZED" "TOGETHER;LOCK" "LAYERS;SOURCES;LIBRARIES")
  add_executable(${name} ${T_SOURCES})
  palimpsest_test_options(${name} ${T_OPTIMIZED})
  palimpsest_link_layers(${name} ${T_LAYERS})
  target_link_libraries(${name} PRIVATE ${T_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  set(environment)
  if(PALIMPSEST_SANITIZE)
    # Sanitizers intercept dlopen(), which then ignores the run path to the modules.
    set(environment ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_prepend:${PROJECT_BINARY_DIR})
  endif()
  set(others)
  if(T_TOGETHER)
    set(others TEST_FILTER -*${T_TOGETHER}.*)
    foreach(part RANGE 7)
      add_test(NAME ${T_TOGETHER}.Part${part}Of8 COMMAND ${name} --gtest_filter=*${T_TOGETHER}.*)
      set_tests_properties(${T_TOGETHER}.Part${part}Of8 PROPERTIES TIMEOUT 3600
        ENVIRONMENT "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${part}" ${environment})
    endforeach()
  endif()
  set(lock)
  if(T_LOCK)
    set(lock RESOURCE_LOCK ${T_LOCK})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST ${others}
    PROPERTIES TIMEOUT 600 ${lock} ${environment})
endfunction()
