# What `cmake --install` puts down: headers, library, program, and the files that find_package and pkg-config read.
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zerocomm)
install(TARGETS zerocomm EXPORT zerocommTargets)
if(TARGET zc)
  install(TARGETS zc)
endif()
install(DIRECTORY include/zerocomm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT zerocommTargets NAMESPACE zerocomm:: DESTINATION ${config_folder})

configure_package_config_file(cmake/zerocommConfig.cmake.in ${PROJECT_BINARY_DIR}/zerocommConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zerocommConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zerocommConfig.cmake ${PROJECT_BINARY_DIR}/zerocommConfigVersion.cmake
        DESTINATION ${config_folder})

configure_file(cmake/zerocomm.pc.in ${PROJECT_BINARY_DIR}/zerocomm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/zerocomm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
