# How a test comes into being. Names of tests are <kind>.<folder>.<Suite>.<test>; the kind and LABELS are labels. Tests
# labelled `full` are the long ones that only `tests/run.sh --full` runs. Engines poison released memory in all of them.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

# With sanitizers, GoogleTest's header is read once for all tests: a tenth of the time of the whole build. Other builds see
# to it that every test includes what it uses.
if(ZC_SANITIZE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_header.cpp CONTENT "int main() {}\n")
  add_executable(zc_test_header ${PROJECT_BINARY_DIR}/test_header.cpp)
  target_link_libraries(zc_test_header PRIVATE GTest::gtest Threads::Threads)
  zc_set_warnings(zc_test_header)  # the same options as the tests have, or it does not fit
  target_precompile_headers(zc_test_header PRIVATE <gtest/gtest.h>)
endif()

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
#             [SERIAL] [TRANSPORTS] [TIMEOUT <seconds>] [LABELS <label>...])
#
# A GoogleTest program <kind>_<folder>_<name>, one ctest per TEST. TRANSPORTS: each runs a second time, as
# <kind>.<folder>_shm.<Suite>.<test>, with its ranks on the transport of processes. SERIAL: it measures time or processor use, so it runs
# alone. Do not link a layer and zerocomm::zerocomm into one program: it would hold two copies of the same code.
function(zc_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RAPIDCHECK;SERIAL;TRANSPORTS" "KIND;TIMEOUT" "SOURCES;LINK;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "zc_add_test(${name}): SOURCES missing, or unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(ZC_SANITIZE AND "full" IN_LIST arg_LABELS)
    return()  # the long tests run without sanitizers
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
  if(ZC_SANITIZE)
    target_precompile_headers(${target} REUSE_FROM zc_test_header)
    # What g++ 12 sees inside std::string, which then no longer counts as a header of the system. The sanitizers look at
    # the same when it runs.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  zc_discover_tests(${target} ${target}_TESTS ${arg_KIND}.${folder}. ${seconds} ${arg_SERIAL} "${arg_KIND};${arg_LABELS}"
                    "ZC_POISON=1")
  if(arg_TRANSPORTS)
    zc_discover_tests(${target} ${target}_shm_TESTS ${arg_KIND}.${folder}_shm. ${seconds} ${arg_SERIAL}
                      "${arg_KIND};${arg_LABELS}" "ZC_POISON=1;ZC_TEST_SHARED_MEMORY=1")
  endif()
endfunction()

# One ctest per TEST of a program, listed in the variable `tests`. The properties that gtest_discover_tests passes on cannot
# hold lists, so labels and environment follow in a script of their own.
function(zc_discover_tests target tests prefix seconds serial labels environment)
  gtest_discover_tests(${target}
    TEST_PREFIX ${prefix}
    TEST_LIST ${tests}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    NO_PRETTY_VALUES
    PROPERTIES TIMEOUT ${seconds} RUN_SERIAL ${serial})
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${tests}.cmake)
  file(WRITE ${script}
       "set_tests_properties(\${${tests}} PROPERTIES LABELS \"${labels}\" ENVIRONMENT \"${environment}\")\n")
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

# Sets ZC_PYTHON to a command that runs Python with the module zerocomm and the library of this build. Debian's interpreter
# comes first: it is the one that sees Debian's NumPy.
function(zc_find_python)
  find_program(ZC_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(ZC_SYSTEM_PYTHON python3 REQUIRED)
  mark_as_advanced(ZC_SYSTEM_PYTHON)
  set(ZC_PYTHON ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${PROJECT_SOURCE_DIR}/python
                ZC_LIBRARY=$<TARGET_FILE:zerocomm> ${ZC_SYSTEM_PYTHON} PARENT_SCOPE)
endfunction()
