# The warnings of everything that this project compiles. PRIVATE: nobody who links the library inherits them.

function(zc_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
  # g++ 12 sees overlapping copies inside std::string that are not there (its bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(ZC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
