# Debian packages: `cpack` in a build that was configured for /usr (preset deb) writes libzerocomm<SOVERSION>,
# libzerocomm-dev and zerocomm-tools into the folder `packages`.
set(CPACK_GENERATOR DEB)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_NAME zerocomm)
set(CPACK_PACKAGE_VENDOR ZeroComm)
set(CPACK_PACKAGE_CONTACT "ZeroComm maintainers <maintainers@zerocomm.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)  # zc needs the library beside it
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(runtime_package libzerocomm${PROJECT_VERSION_MAJOR})
set(exact "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/deb/triggers)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "ZeroComm gives a training framework the mechanism of the Zero Redundancy
Optimizer, and MPI-style collectives, behind a plain C interface.

This package has the shared library.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libzerocomm-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime_package} ${exact}")
if(ZC_HAS_TCP)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libsodium-dev")  # of who links the archive
endif()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "ZeroComm gives a training framework the mechanism of the Zero Redundancy
Optimizer, and MPI-style collectives, behind a plain C interface.

This package has the headers for C and C++, the archive, and what
find_package and pkg-config read.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME zerocomm-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${runtime_package} ${exact}")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "ZeroComm gives a training framework the mechanism of the Zero Redundancy
Optimizer, and MPI-style collectives, behind a plain C interface.

This package has the program zc, which starts ranks, prints layouts and
estimates memory.")

set(CPACK_COMPONENTS_ALL runtime development)
if(TARGET zc)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()

# Debian wants a copyright file and a changelog in each package; an ordinary installation goes without.
set(packages ${runtime_package} libzerocomm-dev zerocomm-tools)
set(components runtime development tools)
foreach(package component IN ZIP_LISTS packages components)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/deb/copyright DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
