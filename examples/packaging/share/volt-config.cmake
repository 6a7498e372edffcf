# SPDX-License-Identifier: MIT OR 0BSD
# The targets of volt.h, for find_package(volt) and for add_subdirectory:
#   volt::volt            the header; one file of the program defines VOLT_IMPLEMENTATION
#   volt::implementation  the header and volt.c beside this file, which defines it. It is compiled
#                         in the build of the program, with the options of that build
# VOLT_DEFINITIONS, a list that is set before, configures both; see >>config in volt.h:
#   set(VOLT_DEFINITIONS VOLT_SINGLE_THREAD VOLT_NO_NAMES)
# The targets are no imported ones: CMake makes the directories of those system directories, and
# gcc and clang suppress warnings in the macros of a header there.
cmake_policy(VERSION 3.10...3.31)

get_filename_component(volt_dir "${CMAKE_CURRENT_LIST_DIR}/../../include" ABSOLUTE)
if(NOT EXISTS "${volt_dir}/volt.h") # in the source tree
  get_filename_component(volt_dir "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
endif()

if(NOT TARGET volt_header)
  add_library(volt_header INTERFACE)
  add_library(volt::volt ALIAS volt_header)
  target_include_directories(volt_header INTERFACE "${volt_dir}")
  target_compile_definitions(volt_header INTERFACE ${VOLT_DEFINITIONS})
  if(NOT "VOLT_SINGLE_THREAD" IN_LIST VOLT_DEFINITIONS)
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads REQUIRED)
    target_link_libraries(volt_header INTERFACE Threads::Threads)
  endif()

  add_library(volt_implementation STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/volt.c")
  add_library(volt::implementation ALIAS volt_implementation)
  target_link_libraries(volt_implementation PUBLIC volt_header)
  set_target_properties(volt_implementation PROPERTIES
    C_STANDARD 11 C_EXTENSIONS ON CXX_STANDARD 17 CXX_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
  get_property(volt_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST volt_languages)
    set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/volt.c" PROPERTIES LANGUAGE CXX)
  endif()
endif()
