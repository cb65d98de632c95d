# zc_add_layer(<folder> SOURCES <file>... [DEPENDS <folder>...] [LINK <target>...])
#
# A folder of src/ as the static library zc_<folder>. DEPENDS names other folders: src/engine calls the public functions
# that src/capi defines, so cycles are legal. LINK names targets outside the project. Unit tests link these libraries;
# users get libzerocomm, which holds the objects of all of them.
function(zc_add_layer folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "zc_add_layer(${folder}): SOURCES missing, or unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if("main.cpp" IN_LIST arg_SOURCES)
    message(FATAL_ERROR "zc_add_layer(${folder}): main.cpp belongs to the program, which src/CMakeLists.txt adds")
  endif()
  set(target zc_${folder})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM arg_DEPENDS PREPEND zc_)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} ${arg_LINK} Threads::Threads)
  zc_set_warnings(${target})
  if(ZC_CLANG_TIDY)
    set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY
      "${ZC_CLANG_TIDY_PROGRAM};--warnings-as-errors=*;--quiet;--extra-arg=-Wno-unknown-warning-option;--extra-arg=-Wno-ignored-optimization-argument")
  endif()
  set_property(GLOBAL APPEND PROPERTY ZC_LAYERS ${folder})
  set_property(GLOBAL APPEND PROPERTY ZC_LAYER_LINKS ${arg_LINK})
endfunction()
