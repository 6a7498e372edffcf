# SPDX-License-Identifier: MIT OR 0BSD
set(VCPKG_BUILD_TYPE release) # header-only
# volt.pc is in share although it has Libs: -pthread is an option of the compiler, no library.
set(VCPKG_POLICY_SKIP_PKGCONFIG_CHECK enabled)

vcpkg_download_distfile(ARCHIVE
    URLS "@UPSTREAM@/releases/download/v${VERSION}/volt-${VERSION}.tar.gz"
    FILENAME "volt-${VERSION}.tar.gz"
    SHA512 @SHA512@
)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}")
vcpkg_cmake_install()
vcpkg_fixup_pkgconfig()
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
