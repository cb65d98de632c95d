# How a test comes into being. Names of tests are <kind>.<folder>.<Suite>.<test>; the kind and LABELS are labels. Tests
# labelled `full` are the long ones that only `tests/run.sh --full` runs. Engines poison released memory in all of them.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

# Seconds a test of each kind may take; sanitizers get more.
set(ZC_TIMEOUT_unit 60)
set(ZC_TIMEOUT_property 120)
set(ZC_TIMEOUT_conformance 120)
set(ZC_TIMEOUT_golden 60)
set(ZC_TIMEOUT_lint 120)
set(ZC_TIMEOUT_install 180)
set(ZC_TIMEOUT_example 120)
set(ZC_TIMEOUT_FACTOR 1)
if(ZC_SANITIZE)
  set(ZC_TIMEOUT_FACTOR 5)
endif()

function(zc_test_timeout result kind wanted)
  if(NOT DEFINED ZC_TIMEOUT_${kind})
    message(FATAL_ERROR "no kind of test is called '${kind}'")
  endif()
  if(NOT wanted)
    set(wanted ${ZC_TIMEOUT_${kind}})
  endif()
  math(EXPR seconds "${wanted} * ${ZC_TIMEOUT_FACTOR}")
  set(${result} ${seconds} PARENT_SCOPE)
endfunction()

# zc_add_test(<name> KIND unit|property|conformance|golden|example SOURCES <file>... [LINK <target>...] [RAPIDCHECK]
#             [SERIAL] [TIMEOUT <seconds>] [LABELS <label>...])
#
# A GoogleTest program <kind>_<folder>_<name>, one ctest per TEST. SERIAL: it measures time or processor use, so it runs
# alone. Do not link a layer and zerocomm::zerocomm into one program: it would hold two copies of the same code.
function(zc_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RAPIDCHECK;SERIAL" "KIND;TIMEOUT" "SOURCES;LINK;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "zc_add_test(${name}): SOURCES missing, or unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  zc_test_timeout(seconds "${arg_KIND}" "${arg_TIMEOUT}")
  # tests/<kind>/<folder>, or examples/<folder>/tests.
  string(REGEX REPLACE "/tests$" "" folder ${CMAKE_CURRENT_SOURCE_DIR})
  get_filename_component(folder ${folder} NAME)
  set(target ${arg_KIND}_${folder}_${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE GTest::gtest_main GTest::gtest ${arg_LINK} Threads::Threads)
  if(arg_RAPIDCHECK)
    target_link_libraries(${target} PRIVATE rapidcheck_gtest)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE ZC_PROJECT_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET zc)
    target_compile_definitions(${target} PRIVATE ZC_PROGRAM="$<TARGET_FILE:zc>")
    add_dependencies(${target} zc)
  endif()
  zc_set_warnings(${target})
  gtest_discover_tests(${target}
    TEST_PREFIX ${arg_KIND}.${folder}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    NO_PRETTY_VALUES
    PROPERTIES TIMEOUT ${seconds} RUN_SERIAL ${arg_SERIAL} ENVIRONMENT ZC_POISON=1)
  # The properties above cannot hold a list, so the labels follow in a script of their own.
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(WRITE ${script} "set_tests_properties(\${${target}_TESTS} PROPERTIES LABELS \"${arg_KIND};${arg_LABELS}\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# zc_add_script_test(<name> KIND lint|install|example COMMAND <command>... [TIMEOUT <seconds>] [LABELS <label>...])
#
# Any command whose exit status says whether the test passed; the ctest is <kind>.<name>.
function(zc_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND;TIMEOUT" "COMMAND;LABELS")
  zc_test_timeout(seconds "${arg_KIND}" "${arg_TIMEOUT}")
  add_test(NAME ${arg_KIND}.${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${arg_KIND}.${name} PROPERTIES LABELS "${arg_KIND};${arg_LABELS}" TIMEOUT ${seconds}
                                                      ENVIRONMENT ZC_POISON=1)
endfunction()
