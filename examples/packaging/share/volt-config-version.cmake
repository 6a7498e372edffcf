# SPDX-License-Identifier: MIT OR 0BSD
# The version of the volt.h that is installed, which its second line says. A version fits if it is
# at least the one that is asked for, and its interface is the same: before 1.0 the first two
# numbers say that, later the first one.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../include/volt.h" PACKAGE_VERSION LIMIT_COUNT 1
  REGEX "^// volt\\.h [0-9.]+ - ")
string(REGEX REPLACE "^// volt\\.h ([0-9.]+) - .*" "\\1" PACKAGE_VERSION "${PACKAGE_VERSION}")

set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN AND
      (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX OR
      (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE" AND
      PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
else()
  string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" volt_has "${PACKAGE_VERSION}.0")
  string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" volt_wants "${PACKAGE_FIND_VERSION}.0")
  if(volt_has STREQUAL volt_wants AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
