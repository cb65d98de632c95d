# What `cmake --install` puts down: headers, library, program, and the files that find_package and pkg-config read. Three
# components: runtime (the shared library), development, tools.
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zerocomm)
set(libraries zerocomm)
if(TARGET zerocomm_static)
  list(APPEND libraries zerocomm_static)
endif()
install(TARGETS ${libraries} EXPORT zerocommTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development)
if(TARGET zc)
  install(TARGETS zc COMPONENT tools)
endif()
install(DIRECTORY include/zerocomm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT zerocommTargets NAMESPACE zerocomm:: DESTINATION ${config_folder} COMPONENT development)

configure_package_config_file(cmake/zerocommConfig.cmake.in ${PROJECT_BINARY_DIR}/zerocommConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zerocommConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zerocommConfig.cmake ${PROJECT_BINARY_DIR}/zerocommConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT development)

set(private_libraries "")
if(ZC_HAS_TCP)
  set(private_libraries "-lsodium ")
endif()
# An installation may be moved as a whole; one in /usr says so in words that pkg-config knows to leave out.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT pc_prefix STREQUAL "/usr")
  file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
endif()
configure_file(cmake/zerocomm.pc.in ${PROJECT_BINARY_DIR}/zerocomm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/zerocomm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
